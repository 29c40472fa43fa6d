"""Every verification method against m-privacy's definition, on random groups.

The definition is evaluated by brute force: all coalitions and, for constraints that can fail when
records are added, all sets of records in between. The two sides share no code.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from evidence import coalition_reference as reference
from evidence.random_groups import even_group, frame, random_group, random_people
from quiltwork.errors import NotPrivateError
from quiltwork.tables.anonymization import anonymize
from quiltwork.tables.codes.group import Group
from quiltwork.tables.constraints import (
    Constraint,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.tables.m_privacy import verify_m_privacy
from quiltwork.tables.table import Table
from quiltwork.tables.verification import METHODS, Verdict, find_breach

NAME = "m-privacy"
CLAIM = (
    "exact verification and the paper's five searches agree with the definition on every random "
    "group, every table that is published keeps it, and 1,000 providers with m = 500 take "
    "milliseconds"
)
GROUPS, TABLES, PROVIDERS = 5_000, 3_000, 1_000
CHAPTERS = [(f"v{n}", chapter, "*") for n, chapter in enumerate("aabbc")]
PUBLISHED = 6_000
EXACT_GROUPS = 200

Progress = Callable[[int, int], None]


def run(progress: Progress) -> dict[str, Any]:
    total = GROUPS + 3 * TABLES + PUBLISHED
    found = check_monotonic(GROUPS, 31, lambda done: progress(done, total))
    found |= check_between(TABLES, 32, lambda done: progress(GROUPS + done, total))
    found |= check_people(TABLES, 33, lambda done: progress(GROUPS + TABLES + done, total))
    before = GROUPS + 2 * TABLES
    found |= check_uncounted(TABLES, 36, lambda done: progress(before + done, total))
    before = GROUPS + 3 * TABLES
    found |= check_published(PUBLISHED, 35, lambda done: progress(before + done, total))
    return found | many_providers(PROVIDERS, PROVIDERS // 2, EXACT_GROUPS)


def check_monotonic(
    groups: int, seed: int, progress: Callable[[int], None] = lambda done: None
) -> dict[str, Any]:
    """k-anonymity and l-diversity, alone and together, by every method."""
    rng = np.random.default_rng(seed)
    broken, checks = 0, Counter[str]()
    for done in range(groups):
        records = random_group(rng, int(rng.choice([6, 10, 30])))
        k, number, m = (int(rng.integers(1, top)) for top in (9, 5, 6))
        rules = [(KAnonymity(k), reference.k_anonymous(k))]
        rules.append((LDiversity(number), reference.distinct_diverse(number)))
        constraint, rule = rules[done % 2] if done % 3 else _both(*rules)
        truth = reference.breached_plainly(records, records, m, rule)
        broken += truth is not None
        table = Table(frame(records, [0] * len(records)), "provider", ["group"], "value")
        for method in ("exact", *METHODS):
            verdict = verify_m_privacy(table, constraint, m, method=method)
            _agree(verdict, records, rule, m, truth is not None)
            checks[method] += verdict.checks
        progress(done + 1)
    assert groups // 5 < broken < groups * 4 // 5, "the random groups are too one-sided"
    return {
        "random groups": groups,
        "of which not m-private": broken,
        "methods compared on each": 1 + len(METHODS),
        "disagreements": 0,
        **{f"checks by {method}": number for method, number in checks.items()},
    }


def check_between(
    tables: int, seed: int, progress: Callable[[int], None] = lambda done: None
) -> dict[str, Any]:
    """Constraints that are not EG monotonic: every set between, as Definition 2.1 says."""
    rng = np.random.default_rng(seed)
    broken = hidden = 0
    for done in range(tables):
        rows = int(rng.integers(4, 13))
        records = even_group(rng, rows) if done % 2 else random_group(rng, rows)
        labels = [0] * len(records)
        if done % 2 == 0:
            labels = [int(g) for g in rng.integers(0, 2, len(records))]
        constraint, rule = _loose_rule(rng, records)
        m = int(rng.integers(0, 4))
        truth, plain = _any_group(records, labels, m, rule)
        broken, hidden = broken + truth, hidden + (truth and not plain)
        order = {"value": sorted({record.value for record in records})}
        table = Table(frame(records, labels), "provider", ["group"], "value", ordinal=order)
        verdict = verify_m_privacy(table, constraint, m)
        assert verdict.private is not truth, (records, labels, m, str(constraint))
        progress(done + 1)
    assert hidden > tables // 50, "the full definition is hardly ever needed"
    return {
        "random tables with constraints that are not EG monotonic": tables,
        "of which not m-private by the full definition": broken,
        "of which removing whole providers shows nothing": hidden,
    }


def check_people(
    tables: int, seed: int, progress: Callable[[int], None] = lambda done: None
) -> dict[str, Any]:
    """Tables where one person may have several records, with several providers."""
    rng = np.random.default_rng(seed)
    broken = 0
    for done in range(tables):
        records, labels = random_people(rng, int(rng.integers(4, 13)), int(rng.integers(1, 3)))
        k, number, m = (int(rng.integers(low, top)) for low, top in ((1, 3), (1, 3), (0, 4)))
        constraint, rule = _both(
            (KAnonymity(k), reference.k_anonymous(k)),
            (LDiversity(number), reference.distinct_diverse(number)),
        )
        if done % 3 == 2:
            constraint, rule = _loose_rule(rng, records)
        full, plain = _any_group(records, labels, m, rule)
        assert full is plain or not constraint.eg_monotonic, "Observation 2.3 fails"
        truth = full
        broken += truth
        order = {"value": sorted({record.value for record in records})}
        table = Table(
            frame(records, labels), "provider", ["group"], "value", "person", ordinal=order
        )
        for method in ("exact", *(METHODS if constraint.eg_monotonic else ())):
            verdict = verify_m_privacy(table, constraint, m, method=method)
            assert verdict.private is not truth, (records, labels, m, str(constraint), method)
        progress(done + 1)
    assert tables // 5 < broken < tables * 4 // 5, "the random tables are too one-sided"
    return {
        "random tables with people in several records": tables,
        "of which tables that are not m-private": broken,
    }


def check_uncounted(
    tables: int, seed: int, progress: Callable[[int], None] = lambda done: None
) -> dict[str, Any]:
    """Missing values, which count for k alone, and values that count as their chapter."""
    rng = np.random.default_rng(seed)
    broken = missing = 0
    for done in range(tables):
        people, by_chapter, size = done % 3 == 0, done % 2 == 0, int(rng.integers(3, 11))
        records, labels = even_group(rng, size), None
        if people:
            records, labels = random_people(rng, size, 2)
        elif done % 3 == 1:
            records = random_group(rng, size)
        gone = rng.random(len(records)) < rng.choice([0.1, 0.4])
        lost = [
            record._replace(value=None) if out else record
            for record, out in zip(records, gone, strict=True)
        ]
        if not any(record.value for record in lost):
            continue
        missing += any(gone)
        m, k, number = (int(rng.integers(*ends)) for ends in ((0, 4), (1, 4), (1, 4)))
        whole = _counted(lost, by_chapter)
        loose, rule = _loose_rule(rng, whole, close=not by_chapter)
        constraint: Constraint = loose
        if done % 5 > 1:
            constraint, rule = LDiversity(number), reference.distinct_diverse(number)
        asked = KAnonymity(k) & constraint
        enough = reference.k_anonymous(k)

        def keeps(rest: Any, enough: Any = enough, rule: Any = rule, by: bool = by_chapter) -> bool:
            return enough(rest) and rule(_counted(rest, by))

        truth, _ = _any_group(lost, labels or [0] * len(lost), m, keeps)
        broken += truth
        more: dict[str, Any] = {"ordinal": {"value": sorted({r.value for r in lost if r.value})}}
        if by_chapter:
            more = {"hierarchies": {"value": CHAPTERS}, "levels": {"value": 1}}
        who = "person" if people else None
        table = Table(
            frame(lost, labels or [0] * len(lost)),
            "provider",
            ["group"],
            "value",
            who,
            missing="value",
            **more,
        )
        for method in ("exact", *(METHODS if asked.eg_monotonic else ())):
            verdict = verify_m_privacy(table, asked, m, method=method)
            assert verdict.private is not truth, (lost, labels, m, str(asked), method)
        progress(done + 1)
    assert tables // 5 < broken < tables * 4 // 5, "the random tables are too one-sided"
    assert missing > tables // 3, "hardly anything is missing"
    return {
        "random tables with missing values, or values that count as chapters": tables,
        "of which tables not m-private ": broken,
    }


def _counted(records: Any, by_chapter: bool) -> list[reference.Record]:
    """The records whose value counts, with what it counts as."""
    chapter = {path[0]: path[1] if by_chapter else path[0] for path in CHAPTERS}
    return [r._replace(value=chapter[r.value]) for r in records if r.value is not None]


_MADE: tuple[dict[str, Any], ...] = (
    {},
    {"method": "baseline"},
    {"method": "separate", "suppression": Fraction(9, 10)},
    {"split": "fitness"},
    {"split": "range"},
    {"relaxed": True},
    {"boxes": "disjoint"},
    {"suppression": Fraction(1, 5)},
)


def check_published(
    tables: int, seed: int, progress: Callable[[int], None] = lambda done: None
) -> dict[str, Any]:
    """What `anonymize` publishes, read by a stranger: groups are rows whose texts are equal.

    Only the order of the rows is taken from it, to know whose each is.
    """

    rng = np.random.default_rng(seed)
    made, refused, tight = Counter[str](), 0, 0
    for done in range(tables):
        people = done % 4 == 3
        rows = int(rng.integers(6, 15))
        records, _ = random_people(rng, rows, 1) if people else (even_group(rng, rows), None)
        rule_at = done % 7
        k, number, m = (int(rng.integers(*ends)) for ends in ((1, 4), (1, 3), (0, 4)))
        more: dict[str, Any] = {"ordinal": {"value": sorted({r.value for r in records})}}
        by_chapter = done % 9 == 4
        if by_chapter:
            more = {"hierarchies": {"value": CHAPTERS}, "levels": {"value": 1}}
        if by_chapter or done % 9 == 5:
            some = rng.random(len(records)) < 0.1
            records = [
                r._replace(value=None) if out else r for r, out in zip(records, some, strict=True)
            ]
        counted = partial(_counted, by_chapter=by_chapter)
        strict, values = _both(
            (KAnonymity(k), lambda rest: True),
            (LDiversity(number), reference.distinct_diverse(number)),
        )
        if rule_at > 2:
            whole = counted(records)
            loose, also = _loose_rule(rng, whole, close=not by_chapter)
            strict, values = _both((strict, values), (loose, also))
        enough = reference.k_anonymous(k)

        def keeps(rest: Any, enough: Any = enough, also: Any = values, by: Any = counted) -> bool:
            return enough(rest) and also(by(rest))

        own = frame(records, [0] * len(records))
        own["age"], own["zip"] = rng.integers(0, 9, len(own)), rng.choice([*"abc"], len(own))
        who = "person" if people else None
        table = Table(own, "provider", ["age", "zip"], "value", who, missing="value", **more)
        try:
            published = anonymize(table, strict, m, **_MADE[done % len(_MADE)])
        except NotPrivateError:
            refused += 1
            continue
        finally:
            progress(done + 1)
        made[str(published.method)] += 1
        texts = published.frame.astype(object).fillna("")
        shown = Counter(map(tuple, texts.itertuples(index=False, name=None)))
        whose = published.table.frame.astype(object).fillna("")
        assert Counter(whose[list(texts.columns)].itertuples(index=False, name=None)) == shown
        left = [records[row] for row in published.rows.tolist()]
        groups: dict[Any, list[reference.Record]] = {}
        labels = whose[["age", "zip"]].astype(str).itertuples(index=False, name=None)
        for texts_of, record in zip(labels, left, strict=True):
            groups.setdefault(texts_of, []).append(record)
        rule = keeps
        if "closeness" in str(strict) and len(left) < len(records):
            continue  # what is left out moves the reference: the rule was made for all rows
        for group in groups.values():
            assert reference.breached(group, records, m, rule) is None, (records, str(strict), m)
        tight += any(
            reference.breached_plainly(group, records, m + 1, rule) is not None
            for group in groups.values()
        )
    number = sum(made.values())
    assert number > tables // 4, "hardly anything was published"
    assert tight > number // 8, "what is published is never near the limit"
    return {
        "random tables to be published, by every constraint and option": tables,
        "of which published": number,
        "of which one more provider could breach": tight,
        "of which refused, as no generalization keeps it": refused,
        "published groups that a coalition breaches": 0,
    }


def many_providers(providers: int, m: int, groups: int) -> dict[str, Any]:
    """Median and worst milliseconds of exact verification of one large group."""
    rng = np.random.default_rng(34)
    times, broken, checks = [], 0, 0
    for _ in range(groups):
        spread = rng.uniform(0.02, 1.0, 14) ** 2
        held = rng.random((providers, 14)) < spread
        held[np.arange(providers), np.argmax(spread)] = True
        group = Group.from_counts(held * rng.integers(1, 4, (providers, 14)))
        constraint = KAnonymity(50) & LDiversity(int(rng.integers(2, 14)))
        start = time.perf_counter()
        outcome = find_breach(group, constraint, m)
        times.append(1000 * (time.perf_counter() - start))
        assert outcome.settled
        broken += outcome.coalition is not None
        checks = max(checks, outcome.checks)
    return {
        f"groups of {providers:,} providers, 14 values, m = {m}": groups,
        "of them not m-private": broken,
        "most checks in one group": checks,
        "milliseconds, median": round(float(np.median(times)), 2),
        "milliseconds, worst": round(max(times), 2),
    }


def _agree(
    verdict: Verdict, records: list[reference.Record], rule: reference.Rule, m: int, truth: bool
) -> None:
    case = (records, verdict.constraint, m, verdict.method, verdict.coalition)
    assert verdict.private is not truth, case
    inside = len({record.provider for record in records})
    assert len(verdict.coalition) <= min(m, inside - 1), case
    rest = [record for record in records if record.provider not in verdict.coalition]
    if truth:
        assert not rule(rest), case
        assert dict(verdict.left) == dict(reference.by_value(rest)), case


def _both(
    first: tuple[Constraint, reference.Rule], second: tuple[Constraint, reference.Rule]
) -> tuple[Constraint, reference.Rule]:
    return first[0] & second[0], lambda records: first[1](records) and second[1](records)


def _loose_rule(
    rng: np.random.Generator, records: list[reference.Record], close: bool = True
) -> tuple[Constraint, reference.Rule]:
    """A constraint that is not EG monotonic; tables declare the order of their values."""
    choice = int(rng.choice([0, 1, 2, 3, 4] if close else [0, 1, 4]))
    if choice == 0:
        level = Fraction(int(rng.integers(4, 11)), 4)
        return EntropyLDiversity(level), reference.entropy_diverse(level)
    if choice == 1:
        c, number = Fraction(int(rng.integers(2, 13)), 4), int(rng.integers(1, 4))
        return RecursiveLDiversity(c, number), reference.recursively_diverse(c, number)
    t = Fraction(int(rng.integers(2, 9)), 10)
    if choice == 2:
        return TCloseness(t), reference.close(t, records, None)
    if choice == 3:
        order = sorted({record.value for record in records})
        return TCloseness(t, "ordered"), reference.close(t, records, order)

    def nearly_even(counts: Any) -> bool:
        return 2 * min(counts.values()) >= max(counts.values()) if counts else False

    def rule(rest: Any) -> bool:
        return nearly_even(reference.by_value(rest))

    from quiltwork.tables.constraints import Custom

    return Custom(nearly_even), rule


def _any_group(
    records: list[reference.Record], labels: list[int], m: int, rule: reference.Rule
) -> tuple[bool, bool]:
    """Whether a group is breached by the full definition, and by removing all that is known."""
    groups = [
        [record for record, label in zip(records, labels, strict=True) if label == wanted]
        for wanted in sorted(set(labels))
    ]
    full = any(reference.breached(group, records, m, rule) is not None for group in groups)
    plain = any(reference.breached_plainly(group, records, m, rule) is not None for group in groups)
    return full, plain
