"""Is the noise what it says it is? Chi-square tests with a control that must fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.report.charts import Line, LineChart
from quiltwork.reproduce.registry import Progress, experiment, tracked
from quiltwork.reproduce.result import Figure, Findings, Row, Sheet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from quiltwork.noise import TwoSidedGeometric

SCALES = ("1/2", "3", "100")
SHOWN = "3"


@experiment(
    "noise-chi-square",
    title="The sampler's distribution",
    item="geometric-mechanism, Example 2.1",
    quick={"draws": 4_000_000},
    full={"draws": 20_000_000},
)
def chi_square(progress: Progress, draws: int) -> Findings:
    """Compare draws with P(Z = z) = (1−α)/(1+α)·α^|z|, and with a scale that is wrong by 1 %."""
    from fractions import Fraction

    from quiltwork.noise import TwoSidedGeometric

    rows: list[Row] = []
    sheets: list[Sheet] = []
    figures: list[Figure] = []
    for text in tracked(progress, SCALES):
        scale = Fraction(text)
        law = TwoSidedGeometric.from_scale(scale)
        wrong = TwoSidedGeometric.from_scale(scale * Fraction(101, 100))
        edge = law.quantile(1 - Fraction(200, draws))
        observed = _tally(law.draw(draws), edge)
        rows += [
            Row(f"p-value at scale {text}", _p_value(observed, _expected(law, edge, draws))),
            Row(
                f"p-value at scale {text} against a scale 1 % larger",
                _p_value(observed, _expected(wrong, edge, draws)),
                note="the negative control: it must be tiny",
            ),
        ]
        places = range(-edge, edge + 1)
        expected = _expected(law, edge, draws)[1:-1]
        sheets.append(
            Sheet(
                f"scale-{text.replace('/', '-')}",
                ("z", "observed", "expected"),
                tuple(zip(places, map(int, observed[1:-1]), map(float, expected), strict=True)),
            )
        )
        if text == SHOWN:
            figures.append(_figure(list(places), observed[1:-1] / draws, expected / draws))
    return Findings(
        f"Chi-square tests of {draws:,} draws per scale: p-values against the exact law are "
        "spread over (0, 1); against a law whose scale is wrong by 1 % they vanish.",
        tuple(rows),
        tuple(figures),
        tuple(sheets),
    )


def _tally(draws: NDArray[np.int64], edge: int) -> NDArray[np.int64]:
    """Count the values −edge..edge, with one bin beyond each end."""
    import numpy as np

    inside = np.clip(draws, -edge - 1, edge + 1) + edge + 1
    return np.bincount(inside, minlength=2 * edge + 3)


def _expected(law: TwoSidedGeometric, edge: int, draws: int) -> NDArray[np.float64]:
    import numpy as np

    inside = np.array([law.probability(z) for z in range(-edge, edge + 1)])
    beyond = law.tail(edge) / 2
    return draws * np.concatenate([[beyond], inside, [beyond]])


def _p_value(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """Test on about 50 bins: more would be too thin to see a scale that is off by 1 %."""
    import numpy as np
    from scipy.special import chdtrc

    starts = np.arange(0, len(observed), -(-len(observed) // 50))
    seen, due = np.add.reduceat(observed, starts), np.add.reduceat(expected, starts)
    statistic = float(((seen - due) ** 2 / due).sum())
    return float(f"{chdtrc(len(starts) - 1, statistic):.3g}")


def _figure(
    places: list[int], observed: NDArray[np.float64], expected: NDArray[np.float64]
) -> Figure:
    return Figure(
        f"scale-{SHOWN}",
        LineChart(
            title=f"Two-sided geometric noise of scale {SHOWN}",
            description="Observed frequencies lie on the exact probabilities, over the whole "
            "range that was seen often enough to compare.",
            x_axis="noise z",
            y_axis="probability",
            lines=(
                Line("exact", tuple(zip(map(float, places), map(float, expected), strict=True))),
                Line(
                    "observed",
                    tuple(zip(map(float, places), map(float, observed), strict=True)),
                    marks=True,
                ),
            ),
            log_y=True,
        ),
    )
