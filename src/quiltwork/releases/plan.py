"""Everything about a release that is decided before the data are used.

Calibration, grid and noise depend on the beliefs, the query and public lengths alone, so a plan
can be shown to anyone. Subjects are independent, so noise that protects one point of one subject
protects all of them; and a longer series never needs less noise than a shorter one, so the longest
subject decides.

Theorem: query-sensitivity
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from quiltwork.beliefs import Belief
from quiltwork.influence import Calibration, calibrate
from quiltwork.noise import TwoSidedGeometric
from quiltwork.queries.base import Query


@dataclass(frozen=True, eq=False)
class Plan:
    """A query on its grid and the integer noise that protects it.

    Attributes:
        query: with its grid chosen.
        calibration: how the scale was found.
        law: the noise of each integer; for the exponential mechanism only its scale counts.
        points: time points asked about, over all subjects.
        length: the longest subject.
        subjects: how many.
    """

    query: Query
    calibration: Calibration
    law: TwoSidedGeometric
    points: int
    length: int
    subjects: int

    @property
    def noise_scale(self) -> Fraction:
        """The scale of the integer noise, exactly."""
        return self.law.scale or Fraction(0)


def make_plan(
    query: Query,
    members: tuple[Belief, ...],
    lengths: Iterable[int],
    epsilon: Fraction,
    method: str | None = None,
    secrets: tuple[int, int] | None = None,
) -> Plan:
    """Calibrate the query for subjects of these lengths and choose its grid.

    Raises:
        InvalidInputError: if the window does not fit a length, or calibration refuses.
    """
    counted = Counter(lengths)
    windows = {length: query.window(length) for length in counted}
    points = sum(counted[n] * (stop - start + 1) for n, (start, stop) in windows.items())
    calibration = _largest(query, members, counted, epsilon, method, secrets)
    coarse = calibration.exact_scale
    fine = query.refined(coarse, points)
    law = TwoSidedGeometric.from_scale(coarse * fine.subdivision)
    return Plan(fine, calibration, law, points, max(counted), counted.total())


def _largest(
    query: Query,
    members: tuple[Belief, ...],
    counted: Counter[int],
    epsilon: Fraction,
    method: str | None,
    secrets: tuple[int, int] | None,
) -> Calibration:
    """Calibrate to the longest subject; the optimal scale may need another one, so try all."""
    if all(belief.length is not None for belief in members):
        return calibrate(members, None, epsilon, method=method, query=query, secrets=secrets)
    lengths = sorted(counted) if method == "optimal-scale" else [max(counted)]
    found = [
        calibrate(members, length, epsilon, method=method, query=query, secrets=secrets)
        for length in lengths
    ]
    return max(found, key=lambda calibration: calibration.exact_scale)
