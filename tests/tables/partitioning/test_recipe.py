"""An order by content, even over values and providers."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from quiltwork.tables import Table
from quiltwork.tables.partitioning.coded_records import records_of
from quiltwork.tables.partitioning.recipe import by_content


def ordered(frame: pandas.DataFrame, subject: str | None = None) -> pandas.DataFrame:
    encoded = Table(frame, "p", ["q", "r"], "s", subject=subject).encoded
    return frame.iloc[by_content(records_of(encoded), encoded)].reset_index(drop=True)


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
