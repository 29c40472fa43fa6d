"""Five attacks that a table's guarantee does not cover, in plain words: who can do what, and did.

| attack | breaks the assumption that nobody |
|---|---|
| minimality | knows how the table was made |
| deFinetti | learns from all groups together |
| downcoding | knows that boxes go no further than needed |
| intersection | has another table about the same people |
| subtraction | knows records of the table, other than those m providers that were asked about |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from quiltwork.exact import percent
from quiltwork.results import ResultBase
from quiltwork.tables.risk.definetti import LearnerScore
from quiltwork.tables.risk.downcoding import DowncodingResult
from quiltwork.tables.risk.intersection import Intersection
from quiltwork.tables.risk.subtraction import SubtractionResult

Decided = Literal["exactly", "bounded", "not decided"]

_COUNTS = "Counts with differential privacy instead of records (quiltwork count)."


@dataclass(frozen=True)
class TableAttack(ResultBase):
    """One attack on a table.

    Attributes:
        attack: its name.
        knows: what the attacker knows.
        found: what was found on this table.
        decided: "exactly", "bounded" (more, or less, may be true, as `found` says), or "not
            decided" where what the attack needs is not at hand.
        helps: what would help against it.
        least, most: records whose sensitive value becomes certain, at least and at most; None where
            that is not what the attack is about, or not decided.
        before, reached: the share of records whose value is guessed right without and with it.
        groups: texts of the groups where it works best.
    """

    also = ("message",)
    attack: str
    knows: str
    found: str
    decided: Decided
    helps: str
    least: int | None = None
    most: int | None = None
    before: float | None = None
    reached: float | None = None
    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def message(self) -> str:
        """All of it in sentences."""
        return f"{self.knows} {self.found} What helps: {self.helps}"

    @property
    def certain(self) -> str:
        """How many records' value becomes certain, as text."""
        if self.most is None:
            return "–"
        least = self.least or 0
        return f"{self.most:,}" if least == self.most else f"{least:,} to {self.most:,}"


@dataclass(frozen=True)
class CutInfo:
    """How the groups of a table were cut, as its maker knows.

    Attributes:
        by_values: whether sensitive values had a say in it.
        left_out: records that are not published because their groups fail the constraint.
    """

    by_values: bool
    left_out: int = 0


def attacks_on(
    guessed: tuple[float, float, str],
    cuts: CutInfo | None,
    learned: Sequence[LearnerScore] | None,
    downcoded: DowncodingResult,
    against: Intersection | None,
    subtracted: SubtractionResult | None,
) -> tuple[TableAttack, ...]:
    """Say what every attack found; `guessed` is how often guesses hit without and with groups."""
    return (
        _minimality(cuts),
        _definetti(guessed, learned),
        _downcoding(downcoded),
        _intersection(against),
        _subtraction(subtracted),
    )


def _minimality(cuts: CutInfo | None) -> TableAttack:
    knows = (
        "Whoever knows the algorithm, the constraint and everybody's quasi-identifiers can ask why "
        "a part of the table was not cut, or not cut otherwise: often because a sensitive value "
        "would have stood out."
    )
    helps = (
        "blind=True (--blind): cuts by numbers of records alone, which tell nothing. On Adult "
        "(k = 30, l = 4) its counts err as much as without if 1 % of the rows are left out; with "
        "none left out k is to be 70 and they err 1.6 times as much. Or k-anonymity alone."
    )
    if cuts is None:
        found = "How this table was made is not known here; its maker's report says it."
        return TableAttack("minimality", knows, found, "not decided", helps)
    if cuts.by_values:
        found = "Cuts depended on sensitive values. What that tells is not decided here."
        return TableAttack("minimality", knows, found, "not decided", helps)
    found = "Nothing: cuts were made without a look at sensitive values."
    if cuts.left_out:
        found += (
            f" Of {cuts.left_out:,} records that are left out it is told that their groups fail "
            "the constraint."
        )
    return TableAttack("minimality", knows, found, "exactly", "Nothing is needed.", 0, 0)


def _definetti(
    guessed: tuple[float, float, str], learned: Sequence[LearnerScore] | None
) -> TableAttack:
    knows = (
        "Whoever knows everybody's quasi-identifiers learns from all groups together which go with "
        "which sensitive value, and guesses with that who has which within each group."
    )
    helps = f"Fewer quasi-identifiers. {_COUNTS}"
    if not learned:
        base, mean, name = guessed
        found = (
            f"Knowing the group raises the best guess of {name!r} from {percent(base)} to "
            f"{percent(mean)}; a trained model starts from there. With the original records "
            "(--original) the attack is carried out and scored."
        )
        return TableAttack("deFinetti", knows, found, "not decided", helps)
    most = max(learned, key=lambda one: one.gain)
    found = (
        f"A naive Bayes model guesses {most.attribute!r} right for {percent(most.learned)} of "
        f"{most.people:,} records, where the groups' own frequencies reach "
        f"{percent(most.by_group)}; of {most.sure:,} it is at least 90 % sure (by the groups "
        f"alone, of {most.sure_by_group:,}), and right for {most.sure_right:,} of these. Better "
        "models may do better."
    )
    shares = most.by_group, most.learned
    return TableAttack("deFinetti", knows, found, "bounded", helps, None, None, *shares)


def _downcoding(found: DowncodingResult) -> TableAttack:
    knows = (
        "Whoever knows the rule of generalization, nothing else, concludes which values there are: "
        "both ends of a range, every member of a set."
    )
    helps = "Larger groups; fixed bins or hierarchies, whose labels do not tell who is inside."
    if not found.generalized:
        told = "No value is generalized, so there is nothing to undo; the values are exact."
        return TableAttack("downcoding", knows, told, "exactly", helps)
    told = f"{percent(found.generalized / found.cells)} of all cells are generalized. "
    if not found.told:
        told += "Their labels do not tell which values occur."
        return TableAttack("downcoding", knows, told, "bounded", helps)
    least = "As boxes go no further than their records"
    if not found.certain:
        least = "If boxes go no further than their records, as this library's do"
    told += (
        f"{least}, {percent(found.told / found.generalized)} of these cells are told, but for who "
        "in the group has which. Who also knows how such data are distributed can narrow more."
    )
    return TableAttack("downcoding", knows, told, "bounded", helps)


def _intersection(against: Intersection | None) -> TableAttack:
    knows = (
        "Whoever has another table about the same people, and knows everybody's groups in both, "
        "keeps only what both leave possible, counts included."
    )
    helps = (
        "Publish one table, and later people in tables of their own; compare before publishing "
        f"(--against). {_COUNTS}"
    )
    if against is None:
        told = "No other release was given to compare with."
        return TableAttack("intersection", knows, told, "not decided", helps)
    told = against.explain()
    if against.rehearsed:
        told = (
            "No earlier release was given, so one was rehearsed: the same rows, cut by another "
            f"rule. {told}"
        )
    known = (against.least, against.most) if against.linked == "subjects" else (0, against.most)
    decided: Decided = "exactly" if against.exact else "bounded"
    return TableAttack("intersection", knows, told, decided, helps, *known)


def _subtraction(found: SubtractionResult | None) -> TableAttack:
    knows = (
        "Providers who pool their own records take them out of the groups and look at what is left."
    )
    helps = "A larger m, which every group then withstands (quiltwork verify says the largest)."
    if found is None:
        told = "One provider, or none named: there is nobody to take out."
        return TableAttack("subtraction", knows, told, "not decided", helps)
    if not found.told:
        told = "No coalition leaves others of one value only, however many collude."
    else:
        size, number = next(iter(found.told.items()))
        who = f"{size:,} providers who collude" if size > 1 else "one provider"
        names = ", ".join(map(str, found.smallest[:5])) + (", …" if len(found.smallest) > 5 else "")
        told = (
            f"It takes {who if size else 'nobody but an outsider'} to be certain of somebody's "
            f"value; coalitions of that size reach {number:,} record{'' if number == 1 else 's'} "
            f"in all{f' (such as {names})' if names else ''}."
        )
        last = max(found.told)
        if last > size:
            told += f" If {last:,} of {found.providers:,} collude: {found.certain(last):,}."
    told += (
        f" Alone, {found.alone} guesses {percent(found.reached)} of the others' values right, "
        f"where the groups as published reach {percent(found.by_group)}."
    )
    certain = found.certain(1)
    groups = (tuple(map(str, found.group)),) if found.group else ()
    shares = found.by_group, found.reached
    return TableAttack(
        "subtraction", knows, told, "exactly", helps, certain, certain, *shares, groups
    )
