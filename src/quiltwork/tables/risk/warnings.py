"""What tables in groups do not protect against, said with every report.

k-anonymity and its kin bound what one table tells someone who does not know how it was made, has
no other table and does not learn from it. Each warning names an attack that breaks one of these
assumptions, and says what in this very table it would work with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quiltwork.tables.risk.definetti import Learned
from quiltwork.tables.risk.disclosure import Disclosure
from quiltwork.tables.risk.downcoding import Downcoded
from quiltwork.tables.risk.intersection import Intersection
from quiltwork.tables.risk.minimality import Refused


@dataclass(frozen=True)
class RiskWarning:
    """One attack that the table's guarantee does not cover.

    Attributes:
        attack: its name.
        message: why it is not covered, and what this table gives it.
    """

    attack: str
    message: str


def warnings_for(
    disclosed: Sequence[Disclosure],
    learned: Sequence[Learned] | None,
    refused: Refused | None,
    downcoded: Downcoded,
    against: Intersection | None,
) -> tuple[RiskWarning, ...]:
    """Return every warning, with this table's own figures."""
    return (
        _minimality(refused),
        _definetti(disclosed, learned),
        _downcoding(downcoded),
        _intersection(against),
    )


def _minimality(refused: Refused | None) -> RiskWarning:
    if refused is None:
        told = "The values of l and t above do not count that in."
    elif refused.nothing:
        told = (
            "Here that says nothing: numbers of records alone would have made the same groups, "
            "whatever sensitive values fit the table."
        )
    elif refused.groups == 0:
        told = (
            "Here numbers of records alone would have made the same groups. That does not prove "
            "that nothing is given away: sensitive values also had a say in which groups withstand "
            "colluding providers, were compared or left out, which was not counted."
        )
    else:
        told = (
            f"Here {refused.groups:,} of {refused.of:,} groups, with {refused.rows:,} records, "
            "would not have been made by numbers of records alone: only sensitive values can have "
            "stood in the way of a cut, there or further up in the table, which may say something "
            "about other groups as well. k-anonymity alone would rule that out."
        )
    return RiskWarning(
        "minimality",
        "Whoever knows the algorithm and the constraint can ask why a part of the table was not "
        "cut, or not cut otherwise: often because a sensitive value would have stood out, which "
        f"says something about its members. {told}",
    )


def _definetti(disclosed: Sequence[Disclosure], learned: Sequence[Learned] | None) -> RiskWarning:
    if learned:
        most = max(learned, key=lambda one: one.gain)
        told = (
            f"Carried out here, a naive Bayes model guesses {most.attribute!r} right for "
            f"{most.learned:.1%} of {most.people:,} records, where the groups' own frequencies "
            f"reach {most.by_group:.1%}; of {most.sure:,} it is at least 90 % sure, and right for "
            f"{most.sure_right:,} of these. Better models may do better."
        )
    else:
        raised = max(disclosed, key=lambda one: one.gain)
        told = (
            f"In this table knowing the group raises the best guess of {raised.attribute!r} from "
            f"{raised.base:.1%} to {raised.mean:.1%}; a trained model starts from there. With the "
            "original records (--original) the attack is carried out and scored."
        )
    return RiskWarning(
        "deFinetti",
        "Groups teach which quasi-identifiers go with which sensitive value, and what is learned "
        f"from all helps to match people and values within each. {told}",
    )


def _downcoding(found: Downcoded) -> RiskWarning:
    if not found.generalized:
        told = "Here no value is generalized, so there is nothing to undo; the values are exact."
    else:
        told = f"Here {found.generalized / found.cells:.1%} of all cells are generalized. " + _told(
            found
        )
    return RiskWarning(
        "downcoding",
        "Generalization that goes just as far as needed can be undone in part by someone who knows "
        f"the rule, and more by someone who knows how such data are distributed. {told}",
    )


def _told(found: Downcoded) -> str:
    if not found.told:
        return "Their labels do not tell which values occur."
    least = "As ranges and sets go no further than their records"
    if not found.certain:
        least = "If ranges and sets go no further than their records, as this library's do"
    return (
        f"{least}, both ends and every member are somebody's values: that tells "
        f"{found.told / found.generalized:.1%} of these cells, but for who in the group has which. "
        "Larger groups tell less."
    )


def _intersection(against: Intersection | None) -> RiskWarning:
    told = "Compare with earlier releases about the same people before publishing (--against)."
    if against is not None:
        told = f"Together with the earlier release: {against.explain()}"
    return RiskWarning(
        "intersection",
        "Two tables that are safe alone need not be together: only what both leave possible "
        f"remains. {told}",
    )
