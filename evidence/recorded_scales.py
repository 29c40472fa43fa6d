"""Scales and totals of many questions, recorded from one version and compared with another.

Questions follow from their number: chains of 2 to 30 states (dense, slow, sparse, periodic), hidden
states, matrices that change, boxes, any start, several beliefs, windows, episodes, and accounts of
many windows. Nothing but public names is used, so that an older version can record.

    python -m evidence.recorded_scales record FILE [first] [stop]
    python -m evidence.recorded_scales compare FILE [first] [stop]
"""

from __future__ import annotations

import json
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

import quiltwork as qw

SECONDS = 60
ALLOWED = 1e-6
SIZES = (2, 2, 2, 3, 3, 4, 4, 5, 6, 8, 10, 12, 16, 20, 26, 30)
LENGTHS = (3, 12, 40, 100, 400, 700, 2_000, 10_000, 100_000)
SHAPES = ("dense", "dense", "sticky", "slow", "near", "sparse", "banded", "alternating", "wide")


class TooLongError(Exception):
    """A question took longer than `SECONDS`."""


def matrix_of(rng: Generator, size: int, shape: str) -> np.ndarray:
    """A stochastic matrix of this shape."""
    rows = rng.dirichlet(np.ones(size), size)
    eye = np.eye(size)
    if shape == "sticky":
        rows = 0.8 * eye + 0.2 * rows
    elif shape == "slow":
        stay = 1 - 10.0 ** -rng.integers(2, 5)
        rows = stay * eye + (1 - stay) * rows
    elif shape == "near":  # rows that hardly differ
        rows = 0.9 * rows[0] + 0.1 * rows
    elif shape == "sparse":
        rows = rows * (rng.random((size, size)) < 0.5) + 1e-3 * eye[np.roll(np.arange(size), 1)]
    elif shape == "banded":
        near = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) <= 1
        rows = rows * near + 0.5 * eye
    elif shape == "alternating":
        rows = 0.1 * rows + 0.9 * eye[np.roll(np.arange(size), 1)]
    elif shape == "wide":
        rows = rows * 10.0 ** -rng.integers(0, 6, (size, size))
    return rows / rows.sum(axis=1, keepdims=True)


def belief_of(rng: Generator) -> Any:
    """One belief of any kind."""
    kind = rng.choice(["chain", "hidden", "cyclic", "box", "list"], p=[0.64, 0.1, 0.13, 0.08, 0.05])
    size = int(rng.choice(SIZES))
    shape = str(rng.choice(SHAPES))
    start = rng.choice(["stationary", "any", "given"], p=[0.6, 0.2, 0.2])
    initial: Any = rng.dirichlet(np.ones(size)) if start == "given" else str(start)
    if kind == "list":
        rows = (matrix_of(rng, size, shape) for _ in range(3))
        return [qw.MarkovChain(one, initial) for one in rows]
    if kind == "hidden":
        shown = min(size, 4)
        data = qw.MarkovChain(matrix_of(rng, shown, shape)).sample(600, int(rng.integers(1 << 30)))
        memory = {"durations": True} if rng.random() < 0.4 else {"order": 2}
        return qw.MarkovChain.fit(data, **memory)
    if kind == "cyclic":
        period = int(rng.choice([2, 3, 7, 24]))
        few = min(size, 6)
        initial = rng.dirichlet(np.ones(few)) if start == "given" else str(start)
        return qw.CyclicChain([matrix_of(rng, few, shape) for _ in range(period)], initial=initial)
    if kind == "box":
        few = min(size, 8)
        centre = matrix_of(rng, few, "sticky")
        spread = rng.choice([0.01, 0.05])
        return qw.ChainBox(np.maximum(centre - spread, 0), np.minimum(centre + spread, 1))
    return qw.MarkovChain(matrix_of(rng, size, shape), initial)


def question_of(number: int) -> tuple[str, Callable[[], dict[str, float]]]:
    """What a number asks, in words, and how it is answered."""
    rng = np.random.default_rng([36, number])
    belief = belief_of(rng)
    length = int(rng.choice(LENGTHS))
    epsilon = float(rng.choice([0.1, 0.5, 1, 1, 2, 5]))
    window = np.sort(rng.integers(1, length + 1, 2)).tolist() if rng.random() < 0.25 else None
    secrets = np.sort(rng.integers(1, length + 1, 2)).tolist() if rng.random() < 0.1 else None
    episode = int(rng.choice([1] * 8 + [2, 5]))
    name = str(rng.choice(["none", "histogram", "transitions"], p=[0.5, 0.35, 0.15]))
    named = belief[0] if isinstance(belief, list) else belief
    words = f"{number}: {named!r}, length {length}, epsilon {epsilon}"
    if rng.random() < 0.3:
        many = int(rng.choice([1, 2, 4, 12, 60]))
        windows = np.sort(rng.integers(1, length + 1, (many, 2)), axis=1).tolist()
        levels = rng.choice([0.01, 0.05, 0.2, 1.0], many).tolist()

        def account() -> dict[str, float]:
            acc = qw.Accountant(belief, length)
            for level, (first, last) in zip(levels, windows, strict=True):
                acc.spend(dp_epsilon=level, start=first, stop=last)
            return {"total": acc.epsilon()}

        return f"{words}, account of {many} windows", account

    def noise() -> dict[str, float]:
        query = None if name == "none" else getattr(qw.queries, name)()
        if window is not None:
            query = (query or qw.queries.histogram()).on(*window)
        within = {} if secrets is None else {"secrets": tuple(secrets)}
        scale = qw.calibrate(
            belief, length, epsilon, "sweep", query, episode=min(episode, length), **within
        ).scale
        found = {"scale": scale}
        if number % 3 == 0 and query is None and episode == 1:
            found["curve"] = qw.influence_curve(belief, length).epsilon(epsilon / 3)
        return found

    return f"{words}, {name} on {window}, secrets {secrets}, episode {episode}", noise


def _stop(*_: Any) -> None:
    raise TooLongError


def answered(number: int) -> dict[str, Any]:
    """The answers to a question, what was asked and how long it took."""
    words, answer = question_of(number)
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(SECONDS)
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: dict[str, Any] = dict(answer())
    except TooLongError:
        found = {"late": True}
    except qw.QuiltworkError as error:
        found = {"refused": type(error).__name__}
    finally:
        signal.alarm(0)
    return {"number": number, "words": words, "seconds": time.process_time() - began, **found}


def record(file: Path, numbers: range) -> None:
    """Append the answers, a line each."""
    with file.open("a") as lines:
        for number in numbers:
            lines.write(json.dumps(answered(number)) + "\n")
            lines.flush()


def compare(file: Path, numbers: range) -> int:
    """Print what needs more noise than recorded, or less; how many need more."""
    more, less, same, seconds = 0, 0, 0, [0.0, 0.0]
    for line in file.read_text().splitlines():
        old = json.loads(line)
        if old["number"] not in numbers or "late" in old:
            continue
        new = answered(old["number"])
        seconds[0] += old["seconds"]
        seconds[1] += new["seconds"]
        if new["seconds"] > 1 + 1.5 * old["seconds"]:
            print(f"SLOW {old['seconds']:.2f} -> {new['seconds']:.2f}: {old['words']}", flush=True)
        for name in ("scale", "total", "curve", "refused"):
            was, now = old.get(name), new.get(name)
            if was == now:
                same += was is not None
            elif not isinstance(was, float) or not isinstance(now, float):
                more += 1
                print(f"OTHER {name} {was} -> {now} {new.get('late', '')}: {old['words']}")
            elif now > was * (1 + ALLOWED):
                more += 1
                print(f"MORE {name} {was:.9g} -> {now:.9g} ({now / was - 1:.1e}): {old['words']}")
            elif now < was * (1 - ALLOWED):
                less += 1
                print(f"less {name} {was:.9g} -> {now:.9g} ({now / was - 1:.1e}): {old['words']}")
            else:
                same += 1
    print(f"{same} the same to {ALLOWED:g}, {less} less, {more} more; seconds {seconds}")
    return more


if __name__ == "__main__":
    action, path, *bounds = sys.argv[1:]
    asked = range(*(int(one) for one in bounds)) if bounds else range(2000)
    if action == "record":
        record(Path(path), asked)
    else:
        sys.exit(compare(Path(path), asked) > 0)
