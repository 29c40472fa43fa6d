"""Tables made without a look at sensitive values: nothing follows from how they were made."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from evidence.checks.blind_cuts import check, left_out
from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from quiltwork.tables import (
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    Table,
    TCloseness,
    anonymization,
    anonymize,
    verify_m_privacy,
)
from quiltwork.tables.partitioning.guards import private_for_any_assignment

PEOPLE = pd.DataFrame({"who": [*"abab"] * 3, "age": range(12), "ill": [*"xyzx", *"xxyy", *"zyxx"]})
ASKED = KAnonymity(2) & LDiversity(2)


def test_every_assignment_makes_the_same_table_if_cuts_are_blind_and_not_otherwise():
    told = check(60)
    assert told["of these with several assignments"] > 5
    assert told["of others, with assignments ruled out"] > 2


def test_every_assignment_of_a_table_with_rows_left_out():
    told = left_out(2, rows=5)
    assert told["with rows left out"] > 0


def test_a_look_at_who_has_what_would_be_noticed(monkeypatch):
    """Negative control: m-privacy of the actual arrangement instead of every arrangement."""

    def looks(encoded, labels, groups, constraint, m):
        names = {"who": encoded.provider, "group": labels, "ill": encoded.sensitive}
        frame = pd.DataFrame(names)
        return np.array(
            [
                verify_m_privacy(
                    Table(frame[labels == g], "who", ["group"], "ill"), constraint, m
                ).private
                for g in range(groups)
            ]
        )

    monkeypatch.setattr(anonymization, "private_for_any_assignment", looks)
    with pytest.raises(AssertionError):
        left_out(9, rows=5)


@pytest.mark.parametrize("m", [0, 1, 2])
def test_groups_are_judged_by_every_arrangement(m):
    rng = np.random.default_rng(m)
    kept = lost = 0
    for _ in range(12):
        rows = int(rng.integers(3, 7))
        frame = pd.DataFrame(
            {"who": rng.choice([*"abc"], rows), "age": "1", "ill": rng.choice([*"xyz"], rows)}
        )
        asked = KAnonymity(int(rng.integers(1, 4))) & LDiversity(int(rng.integers(1, 4)))
        table = Table(frame, "who", ["age"], "ill")
        labels = np.zeros(rows, dtype=np.int64)
        told = bool(private_for_any_assignment(table.encoded, labels, 1, asked, m)[0])
        every = all(
            verify_m_privacy(Table(frame.assign(ill=ill), "who", ["age"], "ill"), asked, m).private
            for ill in set(permutations(frame["ill"]))
        )
        assert told == every
        kept, lost = kept + told, lost + (not told)
    assert kept
    assert lost


def test_failing_groups_are_left_out_or_nothing_is_published():
    table = Table(PEOPLE, None, ["age"], "ill")
    frame = PEOPLE.assign(ill=[*"xxx", *"xyzxyzxyz"])
    failing = Table(frame, None, ["age"], "ill")
    with pytest.raises(NotPrivateError, match="1 of 4 groups with 3 rows fail"):
        anonymize(failing, ASKED, 0, blind=True, split="range")
    made = anonymize(failing, ASKED, 0, blind=True, suppression=0.3, split="range")
    assert made.suppressed == 3
    assert "3 records were left out" in made.report().assessment.attacks[0].found
    assert verify_m_privacy(made.table, ASKED, 0).private
    whole = anonymize(table, KAnonymity(4) & LDiversity(2), 0, blind=True)
    assert whole.report().assessment.attacks[0].certain == "0"


@pytest.mark.parametrize(
    ("choices", "complaint"),
    [
        ({"relaxed": True}, "use sensitive values"),
        ({"split": "fitness"}, "use sensitive values"),
        ({"backend": "spark"}, "needs backend='local'"),
        ({"constraint": KAnonymity(2) & TCloseness(0.9), "suppression": 0.1}, "t-closeness"),
        ({"constraint": EntropyLDiversity(1.5), "m": 1}, "colluding"),
        ({"blind": "yes"}, "blind"),
    ],
)
def test_what_would_look_is_refused(choices, complaint):
    table = Table(PEOPLE, "who", ["age"], "ill")
    given = {"constraint": ASKED, "m": 0, "blind": True, **choices}
    with pytest.raises((InvalidInputError, UnsupportedError), match=complaint):
        anonymize(table, **given)
    named = Table(PEOPLE.assign(person=range(12)), "who", ["age"], "ill", subject="person")
    with pytest.raises(UnsupportedError, match="another person"):
        anonymize(named, ASKED, 0, blind=True)
