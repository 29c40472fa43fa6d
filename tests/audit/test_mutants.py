"""Broken versions of the package are caught, and the honest one is not accused."""

from __future__ import annotations

import pytest

from evidence.checks.mutants import MUTANTS, broken_promises

SAMPLE = 25


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_version_is_caught(name):
    with MUTANTS[name]():
        assert broken_promises("exact", SAMPLE) > 0


@pytest.mark.parametrize("method", ["exact", "optimal-scale"])
def test_the_honest_version_is_not_accused(method):
    assert broken_promises(method, SAMPLE) == 0
