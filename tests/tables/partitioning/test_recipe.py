"""An order by content, even over values and providers; quality asks what groups do to counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas
import pytest

from evidence.mondrian_reference import withstands
from quiltwork.tables import KAnonymity, LDiversity, Table
from quiltwork.tables.partitioning.coded_records import records_of
from quiltwork.tables.partitioning.mondrian import CutRules
from quiltwork.tables.partitioning.recipe import Recipe, by_content, partition
from tests.tables.partitioning.test_provider_aware import Questions, error


def ordered(frame: pandas.DataFrame, subject: str | None = None) -> pandas.DataFrame:
    encoded = Table(frame, "p", ["q", "r"], "s", subject=subject).encoded
    return frame.iloc[by_content(records_of(encoded), encoded.subject)].reset_index(drop=True)


@pytest.mark.parametrize("subject", [None, "who"])
@pytest.mark.parametrize("seed", range(5))
def test_every_shuffle_is_put_in_one_order(seed, subject):
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(0, 3, 60) for name in "pqrs"}
    frame = pandas.DataFrame({**columns, "who": rng.permutation(60)})
    expected = ordered(frame, subject)
    compared = [*"pqrs"] if subject is None else [*"pqrs", "who"]
    for _ in range(3):
        found = ordered(frame.sample(frac=1, random_state=rng).reset_index(drop=True), subject)
        pandas.testing.assert_frame_equal(found[compared], expected[compared])
    assert expected[["q", "r"]].apply(tuple, axis=1).is_monotonic_increasing


def test_records_that_look_alike_come_in_turns():
    """Half of a run holds half of each value, and of each provider within it."""
    frame = pandas.DataFrame({"p": [*"ABCD"] * 12, "q": 1, "r": 1})
    frame["s"] = ["a"] * 32 + ["b"] * 16
    half = ordered(frame).iloc[:24]
    assert half["s"].value_counts().to_dict() == {"a": 16, "b": 8}
    assert half["p"].value_counts().to_dict() == dict.fromkeys("ABCD", 6)


@pytest.mark.parametrize("split", ["range", "loss"])
@pytest.mark.parametrize("method", ["baseline", "provider-aware", "separate"])
def test_quality_answers_no_worse_and_its_groups_are_private(split, method):
    """Columns whose values crowd in places, which other densities set apart."""
    rng = np.random.default_rng(1)
    quasi = {
        "age": rng.normal(10 * rng.integers(0, 4, 1200), 3).astype(int),
        "pay": rng.gamma(2, 10, 1200).astype(int),
        "size": rng.integers(0, 900, 1200),
        "kids": rng.geometric(0.4, 1200),
    }
    others = {name: rng.integers(0, many, 1200) for name, many in (("p", 3), ("s", 5))}
    encoded = Table(pandas.DataFrame({**quasi, **others}), "p", [*quasi], "s").encoded
    rules = CutRules(method == "provider-aware", split)
    usual = Recipe((KAnonymity(12) & LDiversity(3)).bind(encoded), 1, method, rules)
    made, best = (
        partition(encoded, records_of(encoded), replace(usual, quality=quality))
        for quality in (False, True)
    )
    questions = Questions.of(encoded.quasi)
    assert error(questions, best) < 0.95 * error(questions, made)
    for group in range(best.max() + 1):
        rows = best == group
        held = zip(encoded.provider[rows], encoded.sensitive[rows], strict=True)
        assert withstands(held, 12, 3, 0 if method == "separate" else 1)
