"""The largest change of a query's integers, by comparing all pairs of sequences."""

from itertools import product

import numpy as np
import pytest


def all_runs(length):
    return [(a, b) for a in range(1, length + 1) for b in range(a, length + 1)]


def largest_changes(query, states, length):
    """For every run: the L1 distance of answers, maximised over pairs that agree outside it."""
    sequences = np.array(list(product(range(len(states)), repeat=length)), dtype=np.int64)
    answers = np.array([query.evaluate(codes, states) for codes in sequences], dtype=np.int64)
    distance = np.abs(answers[:, None, :] - answers[None, :, :]).sum(axis=2)
    differ = sequences[:, None, :] != sequences[None, :, :]
    found = {}
    for start, stop in all_runs(length):
        outside = np.delete(differ, np.s_[start - 1 : stop], axis=2)
        found[start, stop] = int(distance[~outside.any(axis=2)].max())
    return found


@pytest.fixture(scope="session", name="largest_changes")
def largest_changes_fixture():
    return largest_changes


@pytest.fixture(scope="session", name="all_runs")
def all_runs_fixture():
    return all_runs
