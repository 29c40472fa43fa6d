from __future__ import annotations

import itertools
import sys
from collections import Counter, defaultdict

import pytest

from quiltwork.demo import tables_chapter


@pytest.fixture(scope="module")
def told():
    return tables_chapter.chapter()


def test_what_is_published_withstands_every_hospital_by_brute_force():
    """Drop each hospital's records from each group and count what is left."""
    from quiltwork.tables import KAnonymity, LDiversity, anonymize

    constraint = KAnonymity(tables_chapter.K) & LDiversity(tables_chapter.L)
    published = anonymize(tables_chapter.patients(), constraint, m=tables_chapter.M)
    groups = defaultdict(list)
    for row in published.table.frame.to_pylist():
        groups[row["age"], row["zip"]].append((row["hospital"], row["disease"]))
    for rows, hospital in itertools.product(groups.values(), tables_chapter.HOSPITALS):
        if {who for who, _ in rows} == {hospital}:
            continue
        left = Counter(ill for who, ill in rows if who != hospital)
        assert left.total() >= tables_chapter.K
        assert len(left) >= tables_chapter.L


def test_the_plain_table_is_broken_and_the_other_is_not(told):
    assert told.data["without_providers"]["broken_by"]
    assert told.data["against_providers"]["private"]
    assert told.data["against_providers"]["groups"] < told.data["without_providers"]["groups"]


def test_without_its_extra_the_chapter_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    told = tables_chapter.chapter()
    assert "quiltwork[publish]" in told.lines[0]
    assert told.parts
