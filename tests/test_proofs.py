"""Docs and proofs agree: what a page calls machine-checked is a statement that Coq has proved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STATEMENTS = set(
    re.findall(
        r"^Definition (\w+_statement) : Prop",
        (ROOT / "proofs" / "Statements.v").read_text(encoding="utf-8"),
        flags=re.M,
    )
)
SCEPTICS = (ROOT / "docs" / "for-sceptics.md").read_text(encoding="utf-8")
PAGES = sorted(page for page in (ROOT / "docs" / "theory").glob("*.md") if page.stem != "index")


def named(text: str) -> set[str]:
    return set(re.findall(r"`(\w+_statement)`", text))


def test_every_statement_is_proved_and_on_the_page_for_sceptics():
    checked = (ROOT / "proofs" / "Checked.v").read_text(encoding="utf-8")
    proved = re.findall(r"^Theorem \w+_checked : (\w+_statement)\.", checked, flags=re.M)
    assert sorted(proved) == sorted(STATEMENTS)
    assert named(SCEPTICS) == STATEMENTS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_theory_page_says_how_its_results_were_checked(page):
    title, empty, status, *_ = page.read_text(encoding="utf-8").splitlines()
    assert (title[:2], empty) == ("# ", "")
    assert re.match(r"\*(Machine-checked[:,]|Proved by hand|Measured only)", status), (
        f"{page.name}: the line below the title says how its results were checked"
    )
    assert bool(named(status)) == status.startswith("*Machine-checked")
    assert named(page.read_text(encoding="utf-8")) <= STATEMENTS


def test_machine_checked_statements_are_named_on_a_theory_page():
    pages = set().union(*(named(page.read_text(encoding="utf-8")) for page in PAGES))
    assert pages == STATEMENTS
