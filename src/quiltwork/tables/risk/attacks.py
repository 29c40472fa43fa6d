"""Five attacks that a table's guarantee does not cover: who can do what, and with which result.

| attack | breaks the assumption that nobody |
| --- | --- |
| minimality | knows how the table was made |
| deFinetti | learns from all groups together |
| downcoding | knows that boxes go no further than needed |
| intersection | has another table about the same people |
| subtraction | knows records of the table, beyond those of the m providers that were verified |
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
    """The result of one attack on a table.

    Attributes:
        attack: its name.
        knows: what the attacker knows.
        found: the result on this table.
        decided: "exactly", "bounded" (more, or less, may be true, as `found` says), or "not
            decided" if the attack needs data that are not available.
        helps: what would help against it.
        least, most: the least and the most records whose sensitive value becomes certain; None if
            the attack is about something else, or not decided.
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
        """The whole result in sentences."""
        return f"{self.knows} {self.found} What helps: {self.helps}"

    @property
    def certain(self) -> str:
        """The number of records whose value becomes certain, as text."""
        if self.most is None:
            return "–"
        least = self.least or 0
        return f"{self.most:,}" if least == self.most else f"{least:,} to {self.most:,}"


@dataclass(frozen=True)
class CutInfo:
    """How the groups of a table were cut, as its maker knows.

    Attributes:
        by_values: whether sensitive values influenced the cuts.
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
    """Return the results of all attacks.

    `guessed` is the share of values guessed right without and with groups, and the column.
    """
    return (
        _minimality(cuts),
        _definetti(guessed, learned),
        _downcoding(downcoded),
        _intersection(against),
        _subtraction(subtracted),
    )


def _minimality(cuts: CutInfo | None) -> TableAttack:
    knows = (
        "Someone who knows the algorithm, the constraint and everybody's quasi-identifiers can ask "
        "why a part of the table was not cut, or cut elsewhere: often because a sensitive value "
        "would have been too frequent in one part."
    )
    helps = (
        "blind=True (--blind): cuts by numbers of records alone, which reveal nothing. On Adult "
        "(k = 30, l = 4), the error of counts is the same as without it if 1 % of the rows are "
        "left out; if none are, k must be 70 and the error is 1.6 times as large. Or k-anonymity "
        "alone."
    )
    if cuts is None:
        text = "How this table was made is unknown; see the report of whoever made it."
        return TableAttack("minimality", knows, text, "not decided", helps)
    if cuts.by_values:
        text = "Cuts depended on sensitive values. What that reveals is not decided here."
        return TableAttack("minimality", knows, text, "not decided", helps)
    text = "Nothing: cuts did not depend on sensitive values."
    if cuts.left_out:
        text += (
            f" It is revealed that {cuts.left_out:,} records were left out because their groups "
            "fail the constraint."
        )
    return TableAttack("minimality", knows, text, "exactly", "Nothing is needed.", 0, 0)


def _definetti(
    guessed: tuple[float, float, str], learned: Sequence[LearnerScore] | None
) -> TableAttack:
    knows = (
        "Someone who knows everybody's quasi-identifiers learns from all groups together which of "
        "them go with which sensitive value, and guesses with that who has which value in a group."
    )
    helps = f"Fewer quasi-identifiers. {_COUNTS}"
    if not learned:
        base, mean, name = guessed
        text = (
            f"Knowing the group improves the best guess of {name!r} from {percent(base)} to "
            f"{percent(mean)} right; a trained model starts from there. With the original records "
            "(--original) the attack is carried out and scored."
        )
        return TableAttack("deFinetti", knows, text, "not decided", helps)
    best = max(learned, key=lambda score: score.gain)
    text = (
        f"A naive Bayes model guesses {best.attribute!r} right for {percent(best.learned)} of "
        f"{best.people:,} records, where the groups' own frequencies reach "
        f"{percent(best.by_group)}. It is at least 90 % sure about {best.sure:,} records (by the "
        f"groups alone, about {best.sure_by_group:,}), and right about {best.sure_right:,} of "
        "these. Better models may do better."
    )
    shares = best.by_group, best.learned
    return TableAttack("deFinetti", knows, text, "bounded", helps, None, None, *shares)


def _downcoding(result: DowncodingResult) -> TableAttack:
    knows = (
        "Someone who knows only the rule of generalization concludes which values occur: both ends "
        "of a range, every member of a set."
    )
    helps = "Larger groups; fixed bins or hierarchies, whose labels do not say which values occur."
    if not result.generalized:
        text = "No value is generalized, so there is nothing to undo; the values are exact."
        return TableAttack("downcoding", knows, text, "exactly", helps)
    text = f"{percent(result.generalized / result.cells)} of all cells are generalized. "
    if not result.told:
        text += "Their labels do not say which values occur."
        return TableAttack("downcoding", knows, text, "bounded", helps)
    condition = "As boxes go no further than their records"
    if not result.certain:
        condition = "If boxes go no further than their records, as this library's do"
    text += (
        f"{condition}, the values of {percent(result.told / result.generalized)} of these cells "
        "are revealed, except who in the group has which. Someone who also knows how such data "
        "are distributed can conclude more."
    )
    return TableAttack("downcoding", knows, text, "bounded", helps)


def _intersection(against: Intersection | None) -> TableAttack:
    knows = (
        "Someone with another table about the same people, who knows everybody's groups in both, "
        "keeps only the values that both tables leave possible, counts included."
    )
    helps = (
        "Publish one table, and people who come later in tables of their own; compare before "
        f"publishing (--against). {_COUNTS}"
    )
    if against is None:
        text = "There is no other release to compare with."
        return TableAttack("intersection", knows, text, "not decided", helps)
    text = against.explain()
    if against.rehearsed:
        text = (
            "Without an earlier release, one was rehearsed: the same rows, cut by another rule. "
            f"{text}"
        )
    certain = (against.least, against.most) if against.linked == "subjects" else (0, against.most)
    decided: Decided = "exactly" if against.exact else "bounded"
    return TableAttack("intersection", knows, text, decided, helps, *certain)


def _subtraction(result: SubtractionResult | None) -> TableAttack:
    knows = "Providers who pool their own records remove them from the groups and look at the rest."
    helps = "A larger m, which every group then withstands (quiltwork verify reports the largest)."
    if result is None:
        text = "There is only one provider, or none is named, so nobody's records can be removed."
        return TableAttack("subtraction", knows, text, "not decided", helps)
    if not result.told:
        text = "Whoever colludes, the records of others in a group never have a single value."
    else:
        size, number = next(iter(result.told.items()))
        who = {0: "Outsiders are", 1: "A single provider is"}.get(
            size, f"{size:,} colluding providers are"
        )
        names = ", ".join(map(str, result.smallest[:5])) + (
            ", …" if len(result.smallest) > 5 else ""
        )
        text = (
            f"{who} enough to be certain of somebody's value: such coalitions learn {number:,} "
            f"record{'' if number == 1 else 's'} in all{f' (such as {names})' if names else ''}."
        )
        last = max(result.told)
        if last > size:
            text += f" If {last:,} of {result.providers:,} collude: {result.certain(last):,}."
    text += (
        f" Alone, {result.alone} guesses {percent(result.reached)} of the others' values right, "
        f"compared with {percent(result.by_group)} from the groups as published."
    )
    certain = result.certain(1)
    groups = (tuple(map(str, result.group)),) if result.group else ()
    shares = result.by_group, result.reached
    return TableAttack(
        "subtraction", knows, text, "exactly", helps, certain, certain, *shares, groups
    )
