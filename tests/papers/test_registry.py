from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

from papers import all_experiments, select
from papers.registry import MODULES, tracked
from quiltwork.errors import InvalidInputError

ALL = all_experiments()


def test_names_are_unique_and_fit_for_files():
    import importlib

    from papers import Experiment

    found = [
        value
        for module in MODULES
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, Experiment)
    ]
    assert len(found) == len(ALL)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in ALL)


def test_what_is_done_is_reported():
    seen = []
    assert list(tracked(lambda *done: seen.append(done), "abc")) == ["a", "b", "c"]
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("name", ALL)
def test_both_sizes_fit_the_function(name):
    one = ALL[name]
    assert one.title
    assert one.item
    assert one.function.__doc__
    for size in ("quick", "full"):
        inspect.signature(one.function).bind(lambda done, total: None, **one.parameters(size))
    assert one.quick.keys() == one.full.keys()
    assert all(one.quick[key] <= one.full[key] for key in one.quick)


def test_selecting():
    assert [one.name for one in select([])] == list(ALL)
    last = list(ALL)[-1]
    assert [one.name for one in select([last])] == [last]
    with pytest.raises(InvalidInputError, match="No experiment 'x'"):
        select(["x"])


def test_listing_loads_no_numerics():
    code = (
        "import sys; from papers import all_experiments; all_experiments();"
        "print(sorted({'numpy', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
