"""`Verdict`: the result of a verification, with the coalition, the group and what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quiltwork.errors import NotPrivateError
from quiltwork.results import ResultBase, plain
from quiltwork.wording import argument

_MOST_LISTED = 20


@dataclass(frozen=True)
class Verdict(ResultBase):
    """Whether a table withstands every coalition of at most m providers.

    Attributes:
        private: True only if that is proven.
        coalition: the providers that breach it, as few as suffice; empty if private.
        group: the quasi-identifier values of the breached group; empty if private.
        checks: the number of sets of records that were checked.
        m: the size of coalitions that was verified.
        method: the method of verification.
        constraint: the constraint, in words.
        broken: the part of the constraint that fails, in words; empty if private.
        left: what the coalition leaves, as sensitive value → records (people).
        left_size: the number of these records (people).
        outsiders: whether the group fails even for someone who is not a provider.
        settled: False if the search reached its limit; the table then counts as not private.

    >>> print(Verdict(True, (), (), 3, 1, "exact", "2-anonymity").explain())
    Private: no coalition of at most 1 provider breaches 2-anonymity (3 checks, exact).
    """

    schema = ("verdict", 1)

    private: bool
    coalition: tuple[Any, ...]
    group: tuple[Any, ...]
    checks: int
    m: int
    method: str
    constraint: str
    broken: str = ""
    left: Mapping[Any, int] = field(default_factory=dict)
    left_size: int = 0
    outsiders: bool = False
    settled: bool = True

    def __bool__(self) -> bool:
        return self.private

    def explain(self) -> str:
        """Return the result in a few sentences."""
        if self.private:
            return (
                f"Private: no {_coalition(self.m)} breaches {self.constraint} ({self.checks:,} "
                f"check{'' if self.checks == 1 else 's'}, {self.method})."
            )
        group = ", ".join(map(str, self.group))
        # An undecided group is reported apart from a breach, though both count as not private.
        if not self.settled:
            place = f"the group ({group})" if self.group else "a group"
            done = f" ({self.checks:,} done)" if self.checks else ""
            return (
                f"Undecided, so treated as not private: {place} needs more checks than the limit "
                f"allows{done}. Raise limit, or lower m."
            )
        subject = "Anyone" if self.outsiders else _listed(self.coalition)
        verb = "breaches" if self.outsiders or len(self.coalition) == 1 else "together breach"
        remaining = (
            _listed([f"{value}: {number}" for value, number in self.left.items()]) or "nothing"
        )
        without = "Left there without their own"
        if self.outsiders:
            members = _listed(self.coalition)
            without = f"Left there without {members}'s own" if members else "Records there"
        return (
            f"Not private: {subject} {verb} {self.broken} in the group ({group}). {without}: "
            f"{self.left_size} ({remaining})."
        )

    @property
    def as_error(self) -> NotPrivateError:
        """The error that withholds a table that failed verification; it shows no record."""
        reason = "a group needs more checks than the limit allows"
        # Neither values nor the group's texts: the error may reach people who must not see them.
        if self.settled:
            subject = "anyone" if self.outsiders else _listed(self.coalition)
            reason = f"in one of its groups {subject} would breach {self.broken}"
        return NotPrivateError(
            "The anonymized table failed its verification, so it is withheld: "
            f"{reason}. Groups with equal texts count as one group, and a provider that knows a "
            "person removes all of that person's records. Leave out relaxed, use "
            f"{argument('method', 'baseline')}, lower m, k or l, keep one record of each subject, "
            "or use a constraint that is generalization monotonic."
        )

    def body(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        left = [{"value": plain(value), "records": n} for value, n in self.left.items()]
        return {**super().body(), "left": left}


def not_private_as_one_group(rows: int, m: int, constraint: object) -> NotPrivateError:
    """Return the error for a table that is not private even as one group.

    >>> str(not_private_as_one_group(80, 0, "99-anonymity"))[:58]
    'Even one group of all 80 rows does not fulfil 99-anonymity'
    """
    goal = f"fulfil {constraint}"
    if m:
        coalition = f"{m} colluding providers" if m > 1 else "a single provider"
        goal = f"withstand {coalition} under {constraint}"
    everyone = f"all {rows:,} rows" if rows > 1 else "the only row"
    return NotPrivateError(
        f"Even one group of {everyone} does not {goal}. Use a smaller m, k or l, or add records."
    )


def provider_too_small(
    provider: object, constraint: object, rows: int, allowed: int
) -> NotPrivateError:
    """Return the error for providers that cannot fulfil a constraint with their own rows."""
    return NotPrivateError(
        f"Provider {provider!r} alone cannot fulfil {constraint}. Such providers have {rows:,} "
        f"rows in total, and {allowed:,} may be left out. Anonymize the providers together "
        f"({argument('method', 'provider-aware')}), or raise suppression."
    )


def _coalition(m: int) -> str:
    """Return the coalitions of a size in words."""
    return "outsider" if m == 0 else f"coalition of at most {m} provider{'s' if m != 1 else ''}"


def _listed(items: Sequence[Any]) -> str:
    """Join items with commas; of many, the first ones and the number of others."""
    text = ", ".join(map(str, items[:_MOST_LISTED]))
    number_of_others = len(items) - _MOST_LISTED
    return f"{text} and {number_of_others:,} more" if number_of_others > 0 else text
