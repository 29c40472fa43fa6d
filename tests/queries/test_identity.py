"""Functions that compute different things have different digests, and equal ones the same."""

import functools
import subprocess
import sys
import types

import numpy as np
import pytest

from quiltwork.queries.identity import digest_of

THRESHOLD, WEIGHTS = 3, np.array([1.0, 2.0])
CONFIG = types.ModuleType("config")
CONFIG.part = types.ModuleType("config.part")
CONFIG.table = {}


def helper(x):
    return x.sum()


def uses_globals(x):
    return helper(x[x > THRESHOLD]) + WEIGHTS.sum()


def counts(state, by=1):
    return lambda x, by=by: by * (x == state).sum()


def attributed(x):
    return attributed.scale * x.sum()


def configured(x):
    return CONFIG.LIMIT * x.sum()


def configured_by_table(x):
    return CONFIG.table["a"] * x.sum()


def configured_by_part(x):
    return CONFIG.part.LIMIT * x.sum()


def configured_by_default(x, c=CONFIG):
    return c.LIMIT * x.sum()


def configured_by_closure(c):
    return lambda x: c.LIMIT * x.sum()


def configured_by_helper(x):
    return configured_by_default(x, CONFIG.part)


def importing(x):
    import math

    return math.pi * x.sum()


def recursive(n):
    return 1 if n < 2 else n * recursive(n - 1)


PAIRS = [
    (lambda x: x.sum(), lambda x: x.max()),
    (lambda x: x + 1, lambda x: x + 2),
    (lambda x: x + 1, lambda x: x + 1.0),
    (counts("a"), counts("b")),
    (counts("a"), counts("a", by=2)),
    (counts(np.array([1, 2])), counts(np.array([1, 3]))),
    (counts((1, 2)), counts([1, 2])),
    (counts({"a": 1}), counts({"a": 2})),
    (counts(len), counts(sum)),
    (counts(counts(1)), counts(counts(2))),
    (functools.partial(recursive, 3), functools.partial(recursive, 4)),
    (np.mean, np.sum),
    (len, sum),
    (np.add, np.multiply),
    (lambda x: [v for v in x if v == "a"], lambda x: [v for v in x if v == "b"]),
    ("abc".count, "abd".count),
]


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=range(len(PAIRS)))
def test_different_functions_differ(one, other):
    assert digest_of(one) != digest_of(other) or digest_of(one) is None


@pytest.mark.parametrize("make", [counts, lambda k: functools.partial(recursive, k)])
def test_the_same_function_made_twice_is_the_same(make):
    assert digest_of(make(3)) == digest_of(make(3)) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [("THRESHOLD", 4), ("WEIGHTS", np.array([1.0, 2.5])), ("helper", lambda x: x.max())],
)
def test_what_the_code_refers_to_counts(name, value, monkeypatch):
    before = digest_of(uses_globals)
    monkeypatch.setattr(sys.modules[__name__], name, value)
    assert digest_of(uses_globals) != before
    monkeypatch.undo()
    assert digest_of(uses_globals) == before is not None


@pytest.mark.parametrize(
    ("function", "holder", "name"),
    [
        (attributed, attributed, "scale"),
        (configured, CONFIG, "LIMIT"),
        (configured_by_table, CONFIG, "table"),
        (configured_by_part, CONFIG.part, "LIMIT"),
        (configured_by_default, CONFIG, "LIMIT"),
        (configured_by_closure(CONFIG), CONFIG, "LIMIT"),
        (configured_by_helper, CONFIG.part, "LIMIT"),
        (functools.partial(configured_by_default, c=CONFIG.part), CONFIG.part, "LIMIT"),
    ],
)
def test_attributes_and_values_of_other_modules_count(function, holder, name, monkeypatch):
    found = []
    for value in ({"a": 1}, {"a": 2}, {"a": 1}):
        monkeypatch.setattr(holder, name, value, raising=False)
        found.append(digest_of(function))
    assert found[0] == found[2] != found[1]
    assert None not in found


def test_a_function_may_call_itself():
    assert digest_of(recursive) is not None


class Holder:
    def method(self, x):
        return x.sum()


@pytest.mark.parametrize(
    "function",
    [
        Holder().method,
        Holder(),
        lambda x: Holder().method(x),
        counts(object()),
        lambda x: globals()["THRESHOLD"] * x.sum(),
        lambda x: eval("THRESHOLD") * x.sum(),  # noqa: S307
        lambda x: helper.__globals__["THRESHOLD"] * x.sum(),
        lambda x: sys.modules["config"].LIMIT * x.sum(),
        lambda x: getattr(CONFIG, "LIM" + "IT") * x.sum(),
        lambda x, get=getattr: get(CONFIG, "LIMIT") * x.sum(),
        lambda x: CONFIG.__dict__["LIMIT"] * x.sum(),
        lambda x: [importing(v) for v in x],
        importing,
    ],
)
def test_what_cannot_be_told_apart_has_no_digest(function):
    assert digest_of(function) is None


def test_a_name_that_stands_for_nothing_yet_has_no_digest():
    def total(x):
        return later + x.sum()

    assert digest_of(total) is None
    later = 1
    assert digest_of(total) is not None


def test_digests_are_the_same_in_another_process():
    code = (
        "from quiltwork.queries.identity import digest_of\n"
        "print(digest_of(lambda x: [v for v in x if v in {'a', 'b', 'c', 'd'}]))"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(shown) == 1
    assert "None" not in shown.pop()
