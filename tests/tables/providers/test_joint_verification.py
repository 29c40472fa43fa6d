from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.tables.constraints import EntropyLDiversity, KAnonymity, LDiversity
from quiltwork.tables.m_privacy import verify_m_privacy
from quiltwork.tables.providers.joint_verification import (
    BUCKETS,
    Agreement,
    OpenedSums,
    first_numbers,
    read_boxes,
    take_step,
)
from quiltwork.tables.table import Table

SALT = b"0123456789abcdef"
BOXES = pd.DataFrame({"age": ["0..4", "5..9"]})
ROLES = {"quasi_identifiers": ["age"], "sensitive": "ill"}


def agreement(names="ABC", constraint=None, m=1, salt=SALT):
    boxes = read_boxes(BOXES, ["age"])
    return Agreement(tuple(names), boxes, constraint or KAnonymity(2) & LDiversity(2), m, salt)


def own(rows):
    frame = pd.DataFrame(rows, columns=["age", "ill"], dtype=object)
    return Table(frame.astype({"age": int}), None, **ROLES, missing="value")


def together(agreed, rows, folder, alter=lambda path: None):
    """Let everybody step in turns, each in a folder of its own; what each is told."""
    told = {}
    for who in agreed.providers:
        (folder / who).mkdir(parents=True, exist_ok=True)
    for _ in range(4):
        for who in agreed.providers:
            step = take_step(agreed, who, own(rows[who]), folder / who)
            told |= {} if step.verdict is None else {who: step.verdict}
            for path in step.written:
                _, _, taker = path.stem.partition("-")
                for other in taker or [name for name in agreed.providers if name != who]:
                    shutil.copy(path, folder / other / path.name)
                    alter(folder / other / path.name)
    return told


ROW = st.tuples(st.integers(0, 9), st.sampled_from([*"wxyz", None]))


@given(
    st.lists(st.lists(ROW, min_size=1, max_size=7), min_size=3, max_size=5),
    st.sampled_from([(2, 0), (2, 1), (3, 1), (1, 1), (1, 2), (2, 3), (2, 2)]),
    st.integers(0, 3),
)
@settings(max_examples=150)
def test_the_answer_is_that_of_the_verification_with_all_rows(parts, asked, m):
    """For k, and for l with m up to 1, the same; for more, never private where that is not."""
    constraint = KAnonymity(asked[0])
    constraint = constraint & LDiversity(asked[1]) if asked[1] else constraint
    rows = dict(zip("ABCDE", parts, strict=False))
    everything = [
        (who, "0..4" if age < 5 else "5..9", ill) for who, part in rows.items() for age, ill in part
    ]
    pooled = pd.DataFrame(everything, columns=["who", "age", "ill"], dtype=object)
    pooled = Table(pooled, "who", **ROLES, missing="value")
    private = verify_m_privacy(pooled, constraint, m).private
    agreed = agreement([*rows], constraint, m)
    counts = [agreed.counted(own(part), 0) for part in parts]
    found = OpenedSums(agreed, sum(first_numbers(agreed, one).astype(int) for one in counts))
    unshown = ()
    if found.open:
        unshown = found.unshown(sum(found.second_numbers(one).astype(int) for one in counts))
    verdict = found.verdict(unshown)
    said, named = verdict.private, {box for (box,) in verdict.failing}
    failing = {
        box
        for box in pooled.frame["age"].unique()
        if not verify_m_privacy(
            Table(pooled.frame[pooled.frame["age"] == box], "who", **ROLES, missing="value"),
            constraint,
            m,
        ).private
    }
    assert named >= failing
    assert named == failing or m > 1 < asked[1]
    assert said == private if m <= 1 or asked[1] <= 1 else private or not said


def test_values_of_the_test_have_different_numbers():
    assert len({agreement().bucket(value) for value in "wxyz"}) == 4
    assert agreement().bucket("1.10") == agreement().bucket(1.1)
    for one, other in (
        ("100", "1e2"),
        ("990E999998", "99E999999"),
        ("-0", "0.0"),
        ("-.5", "-0.50"),
    ):
        assert agreement().bucket(one) == agreement().bucket(other)
    assert len({agreement().bucket(one) for one in ("1", "-1", "10", "0.1", "1E999999")}) == 5
    assert agreement().bucket("flu") != agreement(salt=SALT[::-1]).bucket("flu")


GIVEN = {
    "A": [(1, "w"), (2, "x"), (6, "w"), (7, "x"), (8, "y")],
    "B": [(3, "w"), (4, "x"), (5, "w"), (9, "y")],
    "C": [(0, "x"), (1, "w"), (7, "x"), (7, "w")],
}


def altered(path, change):
    document = json.loads(path.read_text())
    field = "seed" if path.suffix == ".share" else "numbers"
    if change == "byte":
        document[field] = ("1" if document[field][0] == "0" else "0") + document[field][1:]
    elif change == "short":
        document[field] = document[field][:-8]
    elif change == "number":
        document[field] = 5
    elif change == "other agreement":
        document["agreed"] = agreement(m=0).digest(own([(1, "w")]))
    path.write_text("{" if change == "junk" else json.dumps(document))


@pytest.mark.parametrize("name", ["B-C.share", "B.counts"])
@pytest.mark.parametrize("change", ["byte", "short", "number", "other agreement", "junk", "lost"])
def test_a_damaged_or_missing_file_never_gives_a_verdict(tmp_path, name, change):
    def alter(path):
        if path.name == name:
            path.unlink() if change == "lost" else altered(path, change)

    if change == "lost":
        assert not {*together(agreement(), GIVEN, tmp_path, alter)} & {*"AC"}
    else:
        with pytest.raises(InvalidInputError):
            together(agreement(), GIVEN, tmp_path, alter)


def test_what_is_given_away_is_hidden_until_all_of_it_is_there(tmp_path):
    """What two of three publish, added up, are numbers without a pattern; all three are counts."""
    agreed = agreement()
    assert all(told.private for told in together(agreed, GIVEN, tmp_path).values())
    numbers = {
        who: np.frombuffer(
            base64.b64decode(json.loads((tmp_path / who / f"{who}.counts").read_text())["numbers"]),
            "<u8",
        )
        for who in "ABC"
    }
    assert (sum(numbers.values()) <= 3).all()
    for pair in ("AB", "BC", "AC", "A"):
        bits = np.unpackbits(np.ascontiguousarray(sum(numbers[who] for who in pair)).view(np.uint8))
        assert abs(bits.mean() - 0.5) < 5 * 0.5 / len(bits) ** 0.5
    before = (tmp_path / "A" / "A.counts").read_bytes()
    with pytest.raises(
        InvalidInputError, match="made from other rows"
    ):  # the verdict is not theirs
        take_step(agreed, "A", own(GIVEN["A"][:2]), tmp_path / "A")
    assert (tmp_path / "A" / "A.counts").read_bytes() == before  # that would show the difference
    with pytest.raises(InvalidInputError, match="was made for other boxes"):
        take_step(agreement(m=2), "A", own(GIVEN["A"]), tmp_path / "A")


def test_of_rare_values_no_more_is_opened_than_the_page_says():
    """Two open boxes: two values must go from one of them, three from the other."""
    rows = {
        "A": [(1, v) for v in "wxyz"] + [(6, v) for v in "stuvwx"],
        "B": [(2, v) for v in "xyzs"] + [(7, v) for v in "stuv"],
        "C": [(3, v) for v in "wyz"] + [(8, v) for v in "uvwx"],
        "D": [(4, v) for v in "wxs"] + [(9, v) for v in "stwx"],
    }
    agreed = agreement([*rows], LDiversity(4), 3)
    counts = [agreed.counted(own(part), 0) for part in rows.values()]
    found = OpenedSums(agreed, sum(first_numbers(agreed, one).astype(int) for one in counts))
    opened = sum(found.second_numbers(one).astype(int) for one in counts)
    need = [found.removed(g) for g in found.open]
    assert need == [2, 3]
    for row, g, most in zip(opened, found.open, need, strict=True):
        held = np.array([(one[g, :BUCKETS][found.rare(g)] > 0).sum() for one in counts])
        assert row.tolist() == [(held >= t).sum() if t <= most else 0 for t in (1, 2, 3)]


def test_others_who_count_another_column_are_refused(tmp_path):
    """Else its values would be taken for secrets, and the boxes for diverse."""
    take_step(agreement(), "A", own(GIVEN["A"]), tmp_path)
    for who in "BC":
        other = pd.DataFrame({"age": [1, 2], "name": ["x", "y"]})
        take_step(agreement(), who, Table(other, None, ["age"], "name"), tmp_path / who)
        shutil.copy(tmp_path / who / f"{who}-A.share", tmp_path)
    with pytest.raises(InvalidInputError, match="other boxes, columns"):
        take_step(agreement(), "A", own(GIVEN["A"]), tmp_path)
    assert (tmp_path / "B").stat().st_mode & 0o777 == 0o700


def test_a_box_without_any_value_of_others_is_not_one_diverse(tmp_path):
    """Without b's rows, the box 5..9 has records, but no value."""
    rows = {"A": [(1, "y"), (1, "x")], "B": [(6, "z")], "C": [(2, "x"), (7, None)]}
    for number, constraint in enumerate((LDiversity(1), KAnonymity(1) & LDiversity(1))):
        told = together(agreement(constraint=constraint), rows, tmp_path / str(number))
        assert {verdict.failing for verdict in told.values()} == {(("5..9",),)}
    told = together(agreement(constraint=KAnonymity(1)), rows, tmp_path / "k")
    assert all(verdict.private for verdict in told.values())


def test_a_file_of_another_agreement_is_refused_before_waiting_for_more(tmp_path):
    take_step(agreement(), "A", own(GIVEN["A"]), tmp_path / "A")
    with pytest.raises(InvalidInputError, match=r"your own file.*empty folders"):
        take_step(agreement(constraint=KAnonymity(3)), "A", own(GIVEN["A"]), tmp_path / "A")
    take_step(agreement(m=2), "B", own(GIVEN["B"]), tmp_path / "B")
    shutil.copy(tmp_path / "B" / "B-A.share", tmp_path / "A")
    with pytest.raises(InvalidInputError, match=r"from B, .*Ask B for the file"):
        take_step(agreement(), "A", own(GIVEN["A"]), tmp_path / "A")


def test_what_cannot_be_agreed_on_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="at least three"):
        agreement("AB")
    with pytest.raises(InvalidInputError, match="file names"):
        agreement(["A", "B", "../C"])
    with pytest.raises(InvalidInputError, match="file names"):
        agreement(["A", "B", 3])
    with pytest.raises(InvalidInputError, match="same file name"):
        agreement(["a", "A-a", "C"])
    for salt in (b"short", "0123456789abcdef"):
        with pytest.raises(InvalidInputError, match="16 random bytes"):
            agreement(salt=salt)
    with pytest.raises(UnsupportedError, match="too many"):
        agreement(constraint=KAnonymity(10**9))
    people = Table(pd.DataFrame({"age": [1], "ill": "w", "who": "x"}), None, **ROLES, subject="who")
    with pytest.raises(UnsupportedError, match="not people"):
        take_step(agreement(), "A", people, tmp_path)
    with pytest.raises(UnsupportedError, match="Only k-anonymity"):
        agreement(constraint=EntropyLDiversity(2))
    with pytest.raises(InvalidInputError, match="not one of the providers"):
        take_step(agreement(), "D", own(GIVEN["A"]), tmp_path)
    with pytest.raises(InvalidInputError, match="1 of your rows are in no box"):
        take_step(agreement(), "A", own([(1, "w"), (99, "w")]), tmp_path)
    crossing = read_boxes(pd.DataFrame({"age": ["0..5", "5..9"]}), ["age"])
    agreed = Agreement(("A", "B", "C"), crossing, KAnonymity(2), 1, SALT)
    with pytest.raises(InvalidInputError, match="overlap"):
        take_step(agreed, "A", own([(5, "w")]), tmp_path)
    assert not list(tmp_path.iterdir())


PROCESS = """
import sys, time
from quiltwork.cli.boundary import run
for _ in range(1000):
    sys.stdout = open(sys.argv[1], "w")
    code = run(sys.argv[2:])
    sys.stdout.close()
    if code or "Waiting" not in open(sys.argv[1]).read():
        break
    time.sleep(0.05)
sys.exit(code)
"""


def test_three_processes_that_share_no_folder_find_out_together(tmp_path):
    """Each has its own folder; a courier carries each file to those who may have it."""
    BOXES.to_csv(tmp_path / "boxes.csv", index=False)
    (tmp_path / "salt").write_bytes(SALT)
    running = []
    for who, rows in GIVEN.items():
        (tmp_path / who).mkdir()
        pd.DataFrame(rows, columns=["age", "ill"]).to_csv(tmp_path / f"{who}.csv", index=False)
        (tmp_path / f"{who}.txt").write_text("")
        words = ["joint", f"{who}.csv", "--boxes", "boxes.csv", "--quasi", "age", "--as", who]
        words += ["--sensitive", "ill", "--k", "2", "--l", "2", "--providers", "A,B,C"]
        words += ["--salt", "salt", "--folder", who]
        command = [sys.executable, "-c", PROCESS, f"{who}.txt", *words]
        running.append(subprocess.Popen(command, cwd=tmp_path))
    while any(one.poll() is None for one in running):
        for path in tmp_path.glob("[ABC]/[ABC]*.*"):
            giver, _, taker = path.stem.partition("-")
            for other in taker or "ABC":
                target = tmp_path / other / path.name
                if path.parent.name == giver and not target.exists():
                    shutil.copy(path, target.with_suffix(".partial"))
                    target.with_suffix(".partial").rename(target)
        time.sleep(0.02)
    assert [one.wait(10) for one in running] == [0, 0, 0]
    for who in GIVEN:
        said = (tmp_path / f"{who}.txt").read_text()
        assert "Private: all 2 boxes with rows keep 2-anonymity" in said
        mine = {path.name for path in (tmp_path / who).glob("*.share")}
        assert all(who in name.removesuffix(".share").split("-") for name in mine)
        assert not {"A.csv", "B.csv", "C.csv"} & {path.name for path in (tmp_path / who).iterdir()}
