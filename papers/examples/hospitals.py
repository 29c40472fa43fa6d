"""Table I of the m-privacy paper: four hospitals, and two ways to publish their patients."""

from __future__ import annotations

from typing import Any

from quiltwork.tables.input.frames import arrow
from quiltwork.tables.table import Table

PATIENTS = (
    ("P1", "Alice", 24, 98745, "Cancer"),
    ("P1", "Bob", 35, 12367, "Asthma"),
    ("P1", "Emily", 22, 98712, "Asthma"),
    ("P2", "Dorothy", 38, 98701, "Cancer"),
    ("P2", "Mark", 37, 12389, "Flu"),
    ("P2", "John", 31, 12399, "Flu"),
    ("P3", "Sara", 20, 12300, "Epilepsy"),
    ("P3", "Cecilia", 39, 98708, "Flu"),
    ("P4", "Olga", 32, 12337, "Cancer"),
    ("P4", "Frank", 33, 12388, "Asthma"),
)
"""Provider, name, age, zip code and disease: the tables T_1 to T_4."""

BY_AGE = {"20..30": ("Alice", "Emily", "Sara"), "31..35": ("Bob", "John", "Olga", "Frank")}
"""The groups of T_a that have their own ages; everyone else is in 36..40."""

BY_ZIP = {"987**": ("Emily", "Dorothy", "Cecilia"), "123**": ("Bob", "Olga", "Frank", "John")}
"""The groups of T_b that have their own zip codes; everyone else has *****."""


def hospitals() -> Table:
    """Return the patients of all four hospitals, before anonymization."""
    names = ("hospital", "name", "age", "zip", "disease")
    columns = dict(zip(names, zip(*PATIENTS, strict=True), strict=True))
    del columns["name"]
    return _table({name: list(values) for name, values in columns.items()})


def table_a() -> Table:
    """Return T_a: grouped by age, 3-anonymous and 2-diverse, but broken by P1."""
    ages = [_label(BY_AGE, patient[1], "36..40") for patient in PATIENTS]
    return _table(_published(ages, ["*****"] * len(PATIENTS)))


def table_b() -> Table:
    """Return T_b: grouped by zip code; 1-private for k = 2 and l = 2, not for k = 3."""
    zips = [_label(BY_ZIP, patient[1], "*****") for patient in PATIENTS]
    return _table(_published(["20..40"] * len(PATIENTS), zips))


def _label(groups: dict[str, tuple[str, ...]], name: str, other: str) -> str:
    return next((label for label, members in groups.items() if name in members), other)


def _published(ages: list[str], zips: list[str]) -> dict[str, list[Any]]:
    return {
        "hospital": [patient[0] for patient in PATIENTS],
        "age": ages,
        "zip": zips,
        "disease": [patient[4] for patient in PATIENTS],
    }


def _table(columns: dict[str, list[Any]]) -> Table:
    return Table(
        arrow().table(columns),
        provider="hospital",
        quasi_identifiers=("age", "zip"),
        sensitive=("disease",),
    )
