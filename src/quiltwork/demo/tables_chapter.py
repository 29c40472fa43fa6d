"""The demo's chapter on tables: patients of four hospitals, protected against each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quiltwork.demo.tour import Chapter
from quiltwork.errors import UnsupportedError
from quiltwork.exact import counted
from quiltwork.report import code, facts, note, paragraph, table

if TYPE_CHECKING:
    from quiltwork.tables import Constraint, Table, Verdict
    from quiltwork.tables.publishing.published_records import Publication

HOSPITALS = ("North", "East", "South", "West")
DISEASES = ("asthma", "diabetes", "flu", "fracture", "migraine")
PATIENTS = 800
K, L, M = 5, 2, 1
SEED = 18540908
_TITLE = "Tables: protection against colluding providers"


def chapter() -> Chapter:
    """Anonymize once against outsiders only, and once against every single hospital."""
    from quiltwork.tables import KAnonymity, LDiversity, anonymize, verify_m_privacy

    try:
        admitted = patients()
    except UnsupportedError as missing:
        return _skipped(str(missing))
    constraint = KAnonymity(K) & LDiversity(L)
    plain = anonymize(admitted, constraint, m=0, method="baseline")
    broken = verify_m_privacy(plain.table, constraint, m=M)
    safe = anonymize(admitted, constraint, m=M)
    held = verify_m_privacy(safe.table, constraint, m=M)
    return Chapter(
        "tables",
        _TITLE,
        _lines(constraint, plain, broken, safe, held),
        _parts(constraint, plain, broken, safe),
        {
            "patients": PATIENTS,
            "constraint": str(constraint),
            "without_providers": {"groups": len(plain.groups), "broken_by": list(broken.coalition)},
            "against_providers": {"groups": len(safe.groups), "private": held.private},
        },
    )


def patients() -> Table:
    """Return simulated admissions, the same people at every run."""
    import numpy as np

    from quiltwork.tables import Table
    from quiltwork.tables.input.frames import arrow

    rng = np.random.default_rng(SEED)
    hospital = rng.choice(HOSPITALS, PATIENTS, p=[0.4, 0.3, 0.2, 0.1])
    frame = arrow().table(
        {
            "hospital": hospital,
            "age": rng.integers(18, 90, PATIENTS),
            "zip": 1000 + 10 * rng.integers(0, 50, PATIENTS),
            "disease": rng.choice(DISEASES, PATIENTS),
        }
    )
    return Table(frame, provider="hospital", quasi_identifiers=["age", "zip"], sensitive="disease")


def _skipped(reason: str) -> Chapter:
    return Chapter(
        "tables", _TITLE, (reason,), (note("Not shown.", reason),), {"not_shown": reason}
    )


def _lines(
    constraint: Constraint, plain: Publication, broken: Verdict, safe: Publication, held: Verdict
) -> tuple[str, ...]:
    verdict = "holds" if held.private else "FAILS"
    return (
        f"{PATIENTS} simulated patients of {len(HOSPITALS)} hospitals, {constraint}:",
        f"  against outsiders    {len(plain.groups):>3} groups   {_breach(broken)}",
        f"  against any hospital {len(safe.groups):>3} groups   {verdict} without the records of "
        "any one",
    )


def _breach(broken: Verdict) -> str:
    if broken.private:
        return "withstands every hospital"
    return f"{broken.coalition[0]} has all but {counted(broken.left_size, 'record')} of one"


def _parts(
    constraint: Constraint, plain: Publication, broken: Verdict, safe: Publication
) -> tuple[Any, ...]:
    first = safe.frame.slice(0, 6).to_pylist()
    return (
        paragraph(
            "Four hospitals publish one table of their patients. Each of them knows its own "
            "records, and subtracting those from a group may leave another patient's record nearly "
            f"alone. A table is m-private for m = {M} if every group keeps its guarantee without "
            "the records of any one hospital."
        ),
        facts(
            {
                "guarantee": str(constraint),
                "withstands": f"any {M} hospital that subtracts its own records",
                "groups": f"{len(safe.groups)} ({len(plain.groups)} if providers are ignored)",
            }
        ),
        note("If providers are ignored:", broken.explain()),
        table(
            "The first rows that are published",
            ["age", "zip", "disease"],
            [(row["age"], row["zip"], row["disease"]) for row in first],
        ),
        paragraph("The same from one file per hospital:"),
        code(
            "quiltwork anonymize north.csv east.csv south.csv west.csv \\\n"
            f"    --quasi age,zip --sensitive disease --k {K} --l {L} --m {M} \\\n"
            "    --output published.csv"
        ),
    )
