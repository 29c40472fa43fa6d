"""On Adult: as narrow as promised."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from quiltwork.tables import KAnonymity, LDiversity, Table, anonymize, query_error
from quiltwork.tables.metrics.loss import publication_loss
from quiltwork.tables.partitioning.coded_records import records_of
from quiltwork.tables.partitioning.nodes import Nodes, bounds, starts_of

QUASI = "age workclass education marital-status race sex native-country income".split()  # noqa: SIM905
ASKED = KAnonymity(30) & LDiversity(4)


@pytest.fixture(scope="module", name="frame")
def adult_frame(shared_file):
    frame = pandas.read_csv(shared_file("data/adult.csv.gz"))
    return frame[~(frame == "?").any(axis=1)].reset_index(drop=True)


def gcp_by_ranges(publication) -> float:
    """The mean share of ranges from the first to the last category by frequency."""
    records = records_of(publication.source.encoded)
    order = np.argsort(publication.labels, kind="stable")
    nodes = Nodes(order, starts_of(publication.sizes))
    extent = records.axes.widths(*bounds(records, nodes))
    return float((extent * publication.sizes).sum()) / records.codes.size


def test_one_provider(frame):
    table = Table(frame, None, QUASI, "occupation")
    default = anonymize(table, ASKED, m=0)
    assert gcp_by_ranges(default) <= 0.063
    assert publication_loss(default).gcp <= gcp_by_ranges(default)
    by_range = anonymize(table, ASKED, m=0, split="range")
    errors = [query_error(table, made, queries=1000) for made in (default, by_range)]
    assert errors[0] <= 0.4 * errors[1]
    sizes = default.table.frame.groupby(QUASI, observed=True)["occupation"].agg(["size", "nunique"])
    assert sizes["size"].min() >= 30
    assert sizes["nunique"].min() >= 4


@pytest.mark.parametrize("m", [3, 9])
def test_provider_aware_errs_no_more_than_the_baseline(frame, m):
    rng = np.random.default_rng(3)
    shares = np.exp(-np.arange(10) / 2)
    owner = rng.choice(10, len(frame), p=shares / shares.sum())
    table = Table(frame.assign(owner=owner), "owner", QUASI, "occupation")
    errors = [
        query_error(table, anonymize(table, ASKED, m, method), queries=1000)
        for method in ("baseline", "provider-aware")
    ]
    assert errors[1] <= errors[0]
