"""The geometric mechanism's figures and examples, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

from papers.registry import Progress, experiment, tracked
from papers.result import Figure, Findings, Row, Sheet
from quiltwork.report.charts import MatrixChart

FIGURE_2 = (
    "2/3 0 1/4 1/24 1/48 1/48",
    "1/3 0 1/2 1/12 1/24 1/24",
    "1/6 0 1/2 1/6 1/12 1/12",
    "1/12 0 1/4 1/3 1/6 1/6",
    "1/24 0 1/8 1/6 1/3 1/3",
    "1/48 0 1/16 1/12 1/6 2/3",
)
"""As printed: row i are the probabilities of the answers 0..5 when the count is i."""

DERIVATION = "0 2 2 3 4 5"
"""Example 5.2: the answer 1 is read as 2, the others as they are."""


@experiment(
    "geometric-figure-2",
    title="An optimal mechanism derived from the geometric one",
    item="geometric-mechanism, Figure 2 and Example 5.2",
)
def figure_2(progress: Progress) -> Findings:
    """Find the consumer's best remap of the 1/2-geometric mechanism; compare all 36 entries."""
    from papers.examples import geometric
    from quiltwork.counts import GeometricMechanism

    remap = GeometricMechanism(5, alpha=Fraction(1, 2)).remap(geometric.figure_2_consumer())
    derived = geometric.figure_2()
    published = [[Fraction(cell) for cell in row.split()] for row in FIGURE_2]
    equal = sum(derived[i][r] == published[i][r] for i in range(6) for r in range(6))
    rows = [
        Row(f"row {i}", " ".join(map(str, derived[i])), " ".join(map(str, published[i])))
        for i in range(6)
    ]
    sheet = Sheet(
        "entries",
        ("count", "answer", "published", "ours"),
        tuple((i, r, str(published[i][r]), str(derived[i][r])) for i in range(6) for r in range(6)),
    )
    return Findings(
        f"{equal} of 36 entries are the printed fractions. The consumer's optimal mechanism is "
        "the geometric mechanism followed by its own best remap of the answers.",
        (
            Row("entries equal to the printed ones", equal, 36, "entries"),
            Row("the answers 0 to 5 are read as", " ".join(map(str, remap.mapping)), DERIVATION),
            *rows,
        ),
        (_matrix("mechanism", derived),),
        (sheet,),
    )


@experiment(
    "geometric-example-2-2",
    title="What a remap is worth to one consumer",
    item="geometric-mechanism, Example 2.2",
    quick={"largest": 9},
    full={"largest": 99},
)
def example_2_2(progress: Progress, largest: int) -> Findings:
    """Binary loss, half the prior on 0 and half on n: face value against the best remap."""
    from papers.examples import geometric

    alpha = Fraction(1, 2)
    rows = []
    for n in tracked(progress, range(1, largest + 1, 2)):
        lost, printed = geometric.example_2_2(n, alpha), alpha ** ((n + 1) // 2) / (1 + alpha)
        rows += [
            Row(f"n = {n}: at face value", str(lost.face_value), str(2 * alpha / (1 + alpha))),
            Row(f"n = {n}: remapped", _short(lost.remapped), _short(printed)),
        ]
    return Findings(
        "At face value the expected loss is 2α/(1+α) whatever n; reading answers from (n+1)/2 on "
        "as n, and the others as 0, brings it down to α^((n+1)/2)/(1+α). Here α = 1/2.",
        tuple(rows),
    )


def _short(value: Fraction) -> str:
    """Write a fraction, powers of two in the denominator as such."""
    twos = (value.denominator & -value.denominator).bit_length() - 1
    if twos < 20:
        return str(value)
    rest = value.denominator >> twos
    return f"{value.numerator}/({rest}·2^{twos})"


def _matrix(name: str, entries: list[list[Fraction]]) -> Figure:
    labels = tuple(map(str, range(len(entries))))
    return Figure(
        name,
        MatrixChart(
            title="The mechanism of Figure 2",
            description="Probability of each answer (columns) for each true count (rows), n = 5, "
            "α = 1/2. No answer is ever 1.",
            row_axis="count",
            column_axis="answer",
            rows=labels,
            columns=labels,
            values=tuple(tuple(map(float, row)) for row in entries),
            texts=tuple(tuple(map(str, row)) for row in entries),
        ),
    )
