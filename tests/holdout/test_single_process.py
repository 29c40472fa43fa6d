"""One owner: threads share a budget, copies and other processes have none."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout import ReusableHoldout

TRAIN, HELD = (np.random.default_rng(seed).random((400, 3)) for seed in (1, 2))


def make(budget=3):
    return ReusableHoldout(TRAIN, HELD, threshold=0.1, noise=0.0005, budget=budget)


def off(data):
    """A statistic whose training mean is 1 and whose holdout mean is 0.1."""
    return np.where(np.isin(data[:, 0], TRAIN[:, 0]), 1.0, 0.1)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_would_multiply_the_budget_and_are_refused(duplicate):
    with pytest.raises(qw.UnsupportedError, match="n_jobs=1"):
        duplicate(make())


def test_a_forked_process_cannot_ask():
    h = make()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            h.ask(lambda data: data[:, 0])
            os.write(writing, b"answered")
        except qw.UnsupportedError:
            os.write(writing, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 20) == b"refused"
    os.close(reading)
    os.close(writing)
    assert h.ask(lambda data: data[:, 0]).remaining == 3


def test_a_process_forked_while_another_thread_asks_is_refused_at_once():
    """The child gets a copy of the lock that nobody there will ever release."""
    h = make()
    asking, forked = threading.Event(), threading.Event()

    def hold():
        with h._alone():
            asking.set()
            forked.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    asking.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends the child if it hangs
        try:
            h.ask(lambda data: data[:, 0])
        except qw.UnsupportedError:
            os._exit(7)
        os._exit(1)
    forked.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_statistic_that_asks_its_own_holdout_is_refused():
    rows = np.random.default_rng(5).random((200, 1))
    h = ReusableHoldout(rows[:100], rows[100:], threshold=0.5, noise=0.01, budget=2)

    def nested(data):
        h.ask(lambda inner: inner[:, 0])
        return data[:, 0]

    with pytest.raises(
        qw.InvalidInputError, match="asked the holdout while the holdout was evaluating it"
    ):
        h.ask(nested)
    assert h.asked == 0
    assert 0 < h.ask(lambda data: data[:, 0]).value < 1


def test_a_statistic_may_wait_for_a_thread_that_asks():
    h = make(budget=3)
    inner = []

    def impatient(data):
        thread = threading.Thread(
            target=lambda: inner.append(h.ask(lambda rows: rows[:, 1]).value), daemon=True
        )
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        return data[:, 0]

    assert h.ask(impatient).value == pytest.approx(TRAIN[:, 0].mean(), abs=2**-20)
    assert inner
    assert h.asked == len(inner) + 1


def test_threads_share_one_budget():
    h = make(budget=5)
    granted = []

    def work():
        for _ in range(4):
            try:
                granted.append(h.ask(off).remaining)
            except qw.BudgetExceeded:
                return

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(granted) == [0, 1, 2, 3, 4]
