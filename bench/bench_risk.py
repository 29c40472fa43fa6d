"""The privacy models' values of one table: quiltwork and pycanon in the same run, and they agree.

The table is Adult (complete records) with quasi-identifiers generalized by hand to a few hundred
groups; pycanon's time grows with the number of groups.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from pycanon import anonymity

from bench.bench_anonymize import adult
from bench.harness import compare
from quiltwork.tables.metrics.models import Models, privacy_models
from quiltwork.tables.metrics.query_error import query_error
from quiltwork.tables.table import Table

KNOWN = ["age", "marital-status", "sex"]
SECRET = ["occupation"]


def generalized(frame: pd.DataFrame) -> pd.DataFrame:
    low = frame["age"] // 20 * 20
    ages = low.astype(str) + ".." + (low + 19).astype(str)
    alone = ~frame["marital-status"].str.startswith("Married")
    marital = np.where(alone, "alone", "married")
    return frame.assign(age=ages, **{"marital-status": marital})


def with_pycanon(frame: pd.DataFrame) -> dict[str, object]:
    return {
        "k": anonymity.k_anonymity(frame, KNOWN),
        "distinct_l": anonymity.l_diversity(frame, KNOWN, SECRET),
        "entropy_l": anonymity.entropy_l_diversity(frame, KNOWN, SECRET),
        "recursive": anonymity.recursive_c_l_diversity(frame, KNOWN, SECRET),
        "t": anonymity.t_closeness(frame, KNOWN, SECRET),
        "beta": anonymity.basic_beta_likeness(frame, KNOWN, SECRET),
        "enhanced_beta": anonymity.enhanced_beta_likeness(frame, KNOWN, SECRET),
        "delta": anonymity.delta_disclosure(frame, KNOWN, SECRET),
    }


def with_quiltwork(frame: pd.DataFrame) -> Models:
    return privacy_models(Table(frame, None, KNOWN, SECRET))


def check_agreement(frame: pd.DataFrame) -> None:
    ours, theirs = with_quiltwork(frame), with_pycanon(frame)
    assert (ours.k, ours.distinct_l) == (theirs["k"], theirs["distinct_l"])
    assert int(ours.entropy_l) == theirs["entropy_l"]
    assert ours.distinct_l == theirs["recursive"][1]
    for name in ("t", "beta", "enhanced_beta", "delta"):
        assert np.isclose(getattr(ours, name), theirs[name]), name


def bench_query_error(original: pd.DataFrame, shown: pd.DataFrame) -> None:
    table = Table(original, None, KNOWN, SECRET)
    published = Table(shown.assign(**{"marital-status": _sets(original)}), None, KNOWN, SECRET)
    table.encoded, published.encoded  # noqa: B018  (encoding is measured above)
    compare(
        "Query error of 2,500 queries on Adult",
        {"quiltwork": lambda: query_error(table, published)},
        repeats=3,
    )


def _sets(original: pd.DataFrame) -> pd.Series:
    """The sets that the two hand-made categories stand for."""
    column = original["marital-status"]
    married = column.str.startswith("Married")
    text = {
        flag: "{" + ", ".join(sorted(column[married == flag].unique())) + "}"
        for flag in (True, False)
    }
    return married.map(text)


def main() -> None:
    warnings.simplefilter("ignore")  # pycanon groups by lists of names in the old way
    original = adult()
    frame = generalized(original)
    check_agreement(frame)
    compare(
        "Privacy models of Adult, 45,222 records",
        {"quiltwork": lambda: with_quiltwork(frame), "pycanon": lambda: with_pycanon(frame)},
        repeats=5,
    )
    bench_query_error(original, frame)


if __name__ == "__main__":
    main()
