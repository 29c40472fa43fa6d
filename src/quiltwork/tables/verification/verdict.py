"""`Verdict`: the answer of a verification, with the coalition, the group and what is left."""

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
        coalition: the providers that breach it, as few as suffice; empty when private.
        group: the quasi-identifier values of the breached group; empty when private.
        checks: how many sets of records were checked.
        m: the size of coalitions asked about.
        method: how it was verified.
        constraint: what was asked, in words.
        broken: the part of the constraint that fails, in words; empty when private.
        left: what the coalition leaves, as sensitive value → records (people).
        left_size: how many records (people) that is.
        outsiders: whether the group fails already for someone who is no provider.
        settled: False if the search reached its limit: then the table counts as not private.
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
        """Say in a few sentences what was found."""
        if self.private:
            return (
                f"Private: no {_coalition(self.m)} breaches {self.constraint} ({self.checks:,} "
                f"check{'' if self.checks == 1 else 's'}, {self.method})."
            )
        group = ", ".join(map(str, self.group))
        if not self.settled:
            where = f"the group ({group})" if self.group else "a group"
            done = f" ({self.checks:,} done)" if self.checks else ""
            return (
                f"Undecided, so treated as not private: {where} needs more checks than the limit "
                f"allows{done}. Raise limit, or lower m."
            )
        who = "Anyone" if self.outsiders else _listed(self.coalition)
        verb = "breaches" if self.outsiders or len(self.coalition) == 1 else "together breach"
        left = _listed([f"{value}: {number}" for value, number in self.left.items()]) or "nothing"
        without = "Left there without their own"
        if self.outsiders:
            named = _listed(self.coalition)
            without = f"Left there without {named}'s own" if named else "Records there"
        return (
            f"Not private: {who} {verb} {self.broken} in the group ({group}). {without}: "
            f"{self.left_size} ({left})."
        )

    @property
    def as_error(self) -> NotPrivateError:
        """The refusal to publish a table that did not pass; it shows nothing of its records."""
        why = "a group needs more checks than the limit allows"
        if self.settled:
            who = "anyone" if self.outsiders else _listed(self.coalition)
            why = f"in one of its groups {who} would breach {self.broken}"
        return NotPrivateError(
            "The anonymized table did not pass its verification, so it is withheld: "
            f"{why}. Groups that look alike are one, and who knows a person takes all their "
            f"records away: leave out relaxed, use {argument('method', 'baseline')}, ask for "
            "less, keep one record "
            "of each subject, or use a constraint that is generalization monotonic."
        )

    def body(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        left = [{"value": plain(value), "records": n} for value, n in self.left.items()]
        return {**super().body(), "left": left}


def never_private(rows: int, m: int, constraint: object) -> NotPrivateError:
    """Return the refusal of a table that is not private even as one group.

    >>> str(never_private(80, 0, "99-anonymity"))[:58]
    'Even one group of all 80 rows does not fulfil 99-anonymity'
    """
    what = f"fulfil {constraint}"
    if m:
        who = f"{m} colluding providers" if m > 1 else "a single provider"
        what = f"withstand {who} under {constraint}"
    everyone = f"all {rows:,} rows" if rows > 1 else "the only row"
    return NotPrivateError(
        f"Even one group of {everyone} does not {what}; "
        "ask for less (a smaller m, k or l) or add records."
    )


def too_few_alone(provider: object, constraint: object, lost: int, most: int) -> NotPrivateError:
    """Return the refusal where providers cannot fulfil a constraint with their own rows."""
    return NotPrivateError(
        f"Provider {provider!r} alone cannot fulfil {constraint}; together such providers have "
        f"{lost:,} rows, and {most:,} may be left out. Anonymize together "
        f"({argument('method', 'provider-aware')}), or raise suppression."
    )


def _coalition(m: int) -> str:
    return "outsider" if m == 0 else f"coalition of at most {m} provider{'s' if m != 1 else ''}"


def _listed(items: Sequence[Any]) -> str:
    """Join a few items; of many, the first and how many more."""
    shown = ", ".join(map(str, items[:_MOST_LISTED]))
    more = len(items) - _MOST_LISTED
    return f"{shown} and {more:,} more" if more > 0 else shown
