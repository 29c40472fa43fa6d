"""`StoredPlan`: a plan as a file, whose releases are made one by one with the planned noise.

`release` takes an epsilon, and the epsilon that gives the planned noise depends on where the window
lies. So a line stores query and noise, and its epsilon is computed when it is carried out: the
largest, up to rounding, at which no less noise is added. Then all lines together cost what was
planned. Cost of a line: a few calibrations.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.beliefs import Belief
from quiltwork.beliefs.secrets import SecretPairs, pairs_from_json, pairs_to_json
from quiltwork.beliefs.sets import digest
from quiltwork.budget.accounting.headroom import epsilon_alone, planned_spending
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

if TYPE_CHECKING:
    from quiltwork.budget.ledger.ledger_records import Debit

SCHEMA, VERSION = "ledger-plan", 1
_STEP_DOWN = 1 - Fraction(1, 2**20)
_STEP_DOWN_GAUSSIAN = 1 - Fraction(1, 2**12)
"""The tolerance of the search that calibrates Gaussian noise."""
_GRID_OF_NUMBERS = 1 - Fraction(1, 2**18)
"""Margin for the grid that numbers are rounded to: its step is charged and depends on the noise."""
_TRIES = 64
_SAME_NOISE = Fraction(1, 500)
"""The relative difference in charge between a line and its release: above the steps down."""

Runs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class PlannedLine:
    """One release of a stored plan.

    Attributes:
        name: its own, such as "monthly 3".
        query: on its window.
        scale: of the noise on the query's integers (per range hi − lo for sums and means).
        delta: δ of its (ε, δ), for Gaussian noise; 0 for geometric noise.
    """

    name: str
    query: Query
    scale: Fraction
    delta: Fraction = Fraction(0)

    def runs(self, length: int) -> Runs:
        """Return the runs of time points that it uses."""
        return self.query.runs or (self.query.window(length),)

    def spending(self, length: int) -> Spending:
        """Return its spending, an upper bound on what the release will be charged."""
        return planned_spending(
            self.query, self.scale, length, self.name, gaussian=bool(self.delta)
        )

    def epsilon(
        self,
        beliefs: Sequence[Belief],
        length: int,
        episode: int = 1,
        pairs: SecretPairs | None = None,
    ) -> Fraction:
        """Return the largest epsilon, up to rounding, at which no less than this noise is added.

        Raises:
            InvalidInputError: if calibration finds less noise at every epsilon tried.
        """
        secrets = Secrets.read(beliefs, length, episode, pairs)
        noise: dict[str, Any] = {}
        if self.delta:
            problem = as_problem(self.query, length, None, episode)
            epsilon, _ = epsilon_under(beliefs, problem, self.scale, self.delta)
            level, noise = Fraction(epsilon), {"noise": "gaussian", "delta": self.delta}
            level *= 1 if getattr(self.query, "span", None) is None else _GRID_OF_NUMBERS
        else:
            level = epsilon_alone(secrets, self.spending(length))
        for _ in range(_TRIES):
            calibration = calibrate(
                beliefs, length, level, query=self.query, episode=episode, pairs=pairs, **noise
            )
            if calibration.integer_scale >= self.scale:
                return level
            level *= _STEP_DOWN_GAUSSIAN if self.delta else _STEP_DOWN
        raise InvalidInputError(
            f"No epsilon was found for which {self.name!r} is released with noise of scale "
            f"{float(self.scale):g}; plan again."
        )


@dataclass(frozen=True)
class StoredPlan:
    """The planned releases of a dataset, with their noise; `quiltwork ledger plan -o` writes it."""

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
            lines = tuple(_line(row, delta) for row in body["releases"])
            length, episode = (integer(body[name], name, 1) for name in ("length", "episode"))
            header = str(body["dataset"]), length, episode, str(body["belief_digest"])
            listed_pairs = pairs_from_json(body.get("pairs"))
            pairs = None if listed_pairs is None else tuple((a, b) for a, b in listed_pairs)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"The plan is damaged: a field is missing or cannot be read ({error}). Plan again."
            ) from None
        return cls(*header, lines, pairs, delta)

    def check(self, beliefs: Sequence[Belief]) -> None:
        """Refuse other beliefs than those of the plan.

        Raises:
            InvalidInputError: if they differ.
        """
        if digest(tuple(beliefs)) != self.belief_digest:
            raise InvalidInputError(
                f"The plan was made for the beliefs of dataset {self.dataset!r}, and these are "
                "others: under them its noise may be too low. Plan again."
            )

    def named(self, name: str) -> PlannedLine:
        """Return the line with this name.

        Raises:
            InvalidInputError: if there is none.
        """
        line = next((line for line in self.lines if line.name == name), None)
        if line is None:
            raise InvalidInputError(
                f"The plan has no release {shortened(name)}; it has {self._listed(self.lines)}."
            )
        return line

    def about(self, runs: Runs) -> PlannedLine:
        """Return the line about exactly these time points.

        Raises:
            InvalidInputError: if there is none, or more than one.
        """
        wanted = [tuple(run) for run in runs]
        lines = [line for line in self.lines if [*map(tuple, line.runs(self.length))] == wanted]
        if len(lines) == 1:
            return lines[0]
        window = ", ".join(f"{start}..{stop}" for start, stop in wanted[:3])
        if lines:
            raise InvalidInputError(
                f"The plan has {len(lines)} releases about the time points {window}: "
                f"{self._listed(lines)}. Choose one by its name."
            )
        raise InvalidInputError(
            f"The plan has no release about the time points {window}; it has "
            f"{self._listed(self.lines)}."
        )

    def _listed(self, lines: Sequence[PlannedLine]) -> str:
        texts = [
            f"{line.name!r} on " + ", ".join(f"{a}..{b}" for a, b in line.runs(self.length)[:2])
            for line in lines[:4]
        ]
        return "; ".join(texts) + (" and more" if len(lines) > 4 else "")

    def remaining(self, debits: Sequence[Debit]) -> tuple[PlannedLine, ...]:
        """Return the lines that are not among the debits of the dataset.

        A debit carries out a line if it answers its query under the line's name as key, or with the
        line's noise. The same query with other noise is another release.
        """
        by_question: dict[str, list[Debit]] = {}
        for debit in debits:
            query = debit.request.get("query")
            if isinstance(query, Mapping):
                by_question.setdefault(_question(query), []).append(debit)
        remaining = []
        for line in self.lines:
            candidates = by_question.get(_question(to_document(line.query)), [])
            planned = _charge(line.spending(self.length))
            made = next((debit for debit in candidates if debit.key == line.name), None) or next(
                (
                    debit
                    for debit in candidates
                    if abs(_charge(debit.spending) - planned) <= _SAME_NOISE * planned
                ),
                None,
            )
            if made is None:
                remaining.append(line)
            else:
                candidates.remove(made)
        return tuple(remaining)


def plan_document(
    plan: ReleasePlan,
    dataset: str,
    length: int,
    episode: int,
    beliefs: Sequence[Belief],
    pairs: SecretPairs | None = None,
) -> dict[str, Any]:
    """Return a plan as JSON values, with everything that `StoredPlan` needs."""
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
    header: dict[str, Any] = {"dataset": dataset, "length": length, "episode": episode}
    header |= {} if pairs is None else {"pairs": pairs_to_json(pairs)}
    return {
        **plan.body(),
        **header,
        "belief_digest": digest(tuple(beliefs)),
        "releases": releases,
    }


def _names(plan: ReleasePlan) -> list[str]:
    """Return a name for each release: its label or kind, numbered where several are equal."""
    labels = [item.planned.label or item.kind for item in plan.items]
    counts, numbered = Counter(labels), Counter[str]()
    names = []
    for label in labels:
        numbered[label] += 1
        names.append(label if counts[label] == 1 else f"{label} {numbered[label]}")
    return names


def _line(body: Mapping[str, Any], delta: Fraction) -> PlannedLine:
    scale = positive_fraction(body["scale"], "scale")
    return PlannedLine(str(body["name"]), from_document(body["query"]), scale, delta)


def _question(query: Mapping[str, Any]) -> str:
    """Return a key of a query and its window that does not depend on the grid of its numbers."""
    parts = ("kind", "state", "states", "lo", "hi", "window", "runs", "k", "labels")
    return repr([query.get(part) for part in parts]).replace("numeric_", "", 1)


def _charge(spending: Spending) -> Fraction:
    """Return a number in proportion to the level, or to its square for Gaussian noise."""
    return spending.square or spending.per_point + spending.per_pair + spending.once
