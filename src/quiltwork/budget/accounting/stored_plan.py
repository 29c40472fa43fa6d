"""A plan as a file, whose releases are made one after the other, each with the planned noise.

A release is asked for by its epsilon, and which epsilon has the planned noise depends on where its
window lies. So a line keeps query and noise, and its epsilon is found when it is carried out: the
largest, but for rounding, for which no less noise is added. Then all lines together cost what was
planned. Cost of a line: some calibrations.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quiltwork import files
from quiltwork.beliefs import Belief
from quiltwork.beliefs.secrets import SecretPairs, pairs_from_json, pairs_to_json
from quiltwork.beliefs.sets import digest
from quiltwork.budget.accounting.gaussian_planning import planned_squares
from quiltwork.budget.accounting.limits import level_alone, planned_spending
from quiltwork.budget.accounting.release_plan import ReleasePlan
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, parse_stored_fraction, positive_fraction, shortened
from quiltwork.influence import calibrate
from quiltwork.influence.calibration_arguments import as_problem
from quiltwork.influence.gaussian_noise import epsilon_under
from quiltwork.queries import Query
from quiltwork.queries.document import from_document, to_document

SCHEMA, VERSION = "ledger-plan", 1
_LESS = 1 - Fraction(1, 2**20)
_LESS_GAUSSIAN = 1 - Fraction(1, 2**12)
"""A calibration of Gaussian noise is a search, which arrives within that."""
_GRID_OF_NUMBERS = 1 - Fraction(1, 2**18)
"""Numbers are rounded to a grid whose step is charged, and depends on the noise."""
_TRIES = 64

Runs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class PlannedLine:
    """One release of a stored plan.

    Attributes:
        name: its own, such as "monthly 3".
        query: on its window.
        scale: of the noise on the query's integers (per range hi − lo for sums and means).
        delta: of Gaussian noise, at which its epsilon is meant; 0 for geometric noise.
    """

    name: str
    query: Query
    scale: Fraction
    delta: Fraction = Fraction(0)

    def runs(self, length: int) -> Runs:
        """The time points that it is about."""
        return self.query.runs or (self.query.window(length),)

    def spending(self, length: int) -> Spending:
        """What it spends at most."""
        priced = planned_squares if self.delta else planned_spending
        return priced(self.query, self.scale, length, self.name)

    def epsilon(
        self,
        beliefs: Sequence[Belief],
        length: int,
        episode: int = 1,
        pairs: SecretPairs | None = None,
    ) -> Fraction:
        """The largest epsilon, but for rounding, for which no less than this noise is added."""
        secrets = Secrets.read(beliefs, length, episode, pairs)
        noise: dict[str, Any] = {}
        if self.delta:
            problem = as_problem(self.query, length, None, episode)
            found, _ = epsilon_under(beliefs, problem, self.scale, self.delta)
            level, noise = Fraction(found), {"noise": "gaussian", "delta": self.delta}
            level *= 1 if getattr(self.query, "span", None) is None else _GRID_OF_NUMBERS
        else:
            level = level_alone(secrets, self.spending(length))
        for _ in range(_TRIES):
            made = calibrate(
                beliefs, length, level, query=self.query, episode=episode, pairs=pairs, **noise
            )
            if made.integer_scale >= self.scale:
                return level
            level *= _LESS_GAUSSIAN if self.delta else _LESS
        raise InvalidInputError(
            f"No epsilon was found for which {self.name!r} is released with noise of scale "
            f"{float(self.scale):g}; plan again."
        )


@dataclass(frozen=True)
class StoredPlan:
    """Releases to come from a dataset, with their noise."""

    dataset: str
    length: int
    episode: int
    belief_digest: str
    lines: tuple[PlannedLine, ...]
    pairs: SecretPairs | None = None
    delta: Fraction = Fraction(0)

    @classmethod
    def from_json(cls, text: str | bytes) -> StoredPlan:
        """Read what `quiltwork ledger plan -o` wrote.

        Raises:
            InvalidInputError: if it is another document, or damaged.
        """
        body = files.load(text, SCHEMA, (VERSION,))
        try:
            delta = parse_stored_fraction(body.get("delta", "0"), "delta")
            lines = tuple(_line(one, delta) for one in body["releases"])
            length, episode = (integer(body[name], name, 1) for name in ("length", "episode"))
            named = str(body["dataset"]), length, episode, str(body["belief_digest"])
            written = pairs_from_json(body.get("pairs"))
            pairs = None if written is None else tuple((a, b) for a, b in written)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"The plan lacks something ({error}); plan again.") from None
        return cls(*named, lines, pairs, delta)

    def check(self, beliefs: Sequence[Belief]) -> None:
        """Refuse beliefs other than those that it was made for.

        Raises:
            InvalidInputError: if they differ.
        """
        if digest(tuple(beliefs)) != self.belief_digest:
            raise InvalidInputError(
                f"The plan was made for the beliefs of dataset {self.dataset!r}, and these are "
                "others: under them its noise may be too little. Plan again."
            )

    def named(self, name: str) -> PlannedLine:
        """The line of this name.

        Raises:
            InvalidInputError: if there is none.
        """
        found = [one for one in self.lines if one.name == name]
        if not found:
            raise InvalidInputError(
                f"The plan has no release {shortened(name)}; it has {self._shown(self.lines)}."
            )
        return found[0]

    def about(self, runs: Runs) -> PlannedLine:
        """The line that is about exactly these time points.

        Raises:
            InvalidInputError: if there is none, or more than one.
        """
        asked = [tuple(run) for run in runs]
        found = [one for one in self.lines if [*map(tuple, one.runs(self.length))] == asked]
        if len(found) == 1:
            return found[0]
        where = ", ".join(f"{start}..{stop}" for start, stop in asked[:3])
        if found:
            raise InvalidInputError(
                f"The plan has {len(found)} releases about the time points {where}: "
                f"{self._shown(found)}. Say which by its name."
            )
        raise InvalidInputError(
            f"The plan has no release about the time points {where}; it has "
            f"{self._shown(self.lines)}."
        )

    def _shown(self, lines: Sequence[PlannedLine]) -> str:
        shown = [
            f"{one.name!r} on " + ", ".join(f"{a}..{b}" for a, b in one.runs(self.length)[:2])
            for one in lines[:4]
        ]
        return "; ".join(shown) + (" and more" if len(lines) > 4 else "")

    def remaining(self, made: Sequence[Mapping[str, Any]]) -> tuple[PlannedLine, ...]:
        """The lines of which no release is among those that were made, of which these are queries.

        Queries are as documents, as a ledger keeps them with each debit.
        """
        counted, left = Counter(map(_place, made)), []
        for line in self.lines:
            place = _place(to_document(line.query))
            if counted[place]:
                counted[place] -= 1
            else:
                left.append(line)
        return tuple(left)


def plan_document(
    plan: ReleasePlan,
    dataset: str,
    length: int,
    episode: int,
    beliefs: Sequence[Belief],
    pairs: SecretPairs | None = None,
) -> dict[str, Any]:
    """Write a plan with everything that its releases need."""
    releases = [
        {
            **row,
            "name": name,
            "query": to_document(item.planned.query),
            "window": [item.spending.start, item.spending.stop],
            "naive_scale": item.naive_scale if item.naive_scale < math.inf else None,
        }
        for row, name, item in zip(plan.records(), _names(plan), plan.items, strict=True)
    ]
    about: dict[str, Any] = {"dataset": dataset, "length": length, "episode": episode}
    about |= {} if pairs is None else {"pairs": pairs_to_json(pairs)}
    return {
        **plan.body(),
        **about,
        "belief_digest": digest(tuple(beliefs)),
        "releases": releases,
    }


def _names(plan: ReleasePlan) -> list[str]:
    """A name for each release: its label or kind, numbered where several have the same."""
    wanted = [item.planned.label or item.kind for item in plan.items]
    several, seen = Counter(wanted), Counter[str]()
    names = []
    for one in wanted:
        seen[one] += 1
        names.append(one if several[one] == 1 else f"{one} {seen[one]}")
    return names


def _line(body: Mapping[str, Any], delta: Fraction) -> PlannedLine:
    scale = positive_fraction(body["scale"], "scale")
    return PlannedLine(str(body["name"]), from_document(body["query"]), scale, delta)


def _place(query: Mapping[str, Any]) -> str:
    """What tells queries apart, whatever grid they have: what is asked, and where."""
    parts = ("kind", "state", "states", "lo", "hi", "window", "runs", "k", "labels")
    return repr([query.get(part) for part in parts]).replace("numeric_", "", 1)
