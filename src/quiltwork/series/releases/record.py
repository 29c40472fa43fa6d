"""`Release`: a private answer with everything needed to read, check and account for it.

`ReleasedAnswer` has the values; `Release` adds its explanation, its page to forward and its file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from quiltwork.exact import Number
from quiltwork.series.releases.released_answer import ReleasedAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quiltwork.beliefs import Belief
    from quiltwork.budget.judging import Usefulness
    from quiltwork.report import Chart
    from quiltwork.series.releases.release_page import ReportContext


@dataclass(frozen=True, eq=False, repr=False)
class Release(ReleasedAnswer):
    """A private answer with its noise, its guarantee and its error bars.

    >>> import quiltwork as qw
    >>> chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    >>> answer = qw.release(["rest", "walk"] * 50, qw.queries.count("walk"), chain, epsilon=1.0)
    >>> answer.epsilon, answer.protects, round(answer.scale, 4)
    (1.0, 'moment', 3.3364)

    Attributes:
        value: the answer to read: an int (count), a float (mean, sum, custom), a label (most
            common), or an array with one entry per cell (a square matrix for transitions).
        cells: the labels of the entries, row by row.
        query: the question, on the grid that was used.
        exact_epsilon: the bound on the privacy loss under every belief, exactly; `epsilon` is the
            same as a float. Above the requested ε only with the method "entry".
        noise_scale: the scale of the noise added to the integers, exactly.
        noisy: the integers after noise (for the most common state: its index).
        offset: the value of the integer 0: an integer m stands for offset + unit·m.
        unit: the value of one step of the integers; `scale` is noise_scale·unit.
        rounding: a bound on the error of the grid in a cell; part of every interval.
        total: the sum of the true cells, where it is public.
        points: the number of time points asked about, over all subjects.
        length: the length of the longest subject.
        subjects: the number of independent subjects that were pooled.
        method: the method of calibration.
        node: the time point that needs the most noise; of an episode the first.
        quilt: the active quilt of `node`, where the method works by quilts.
        influence: the leakage that all other time points add at `node`: by the sweep through the
            noisy answer, by quilts the max-influence of the quilt.
        secrets: the protected time points, or None for all.
        beliefs: each belief in words, as `Belief.summary` describes it.
        belief_digest: SHA-256 of the beliefs' JSON without their sources.
        dataset: the ledger's name for the data, if a ledger was debited.
        processing: free post-processing steps applied to `value`, in order.
        episode: the number of consecutive time points that are one secret.
        before: the part of `influence` from earlier time points; 0 where the method has none.
        assumed_step: the beliefs' step in seconds, if that of the data was unknown; else None.
        period: the first moment of the window and the end, in ISO 8601, if times are known.
        delta: the probability of a privacy loss above epsilon; 0 unless the noise is Gaussian.
        fitted: whether a belief was fitted on the released data; then the guarantee does not hold,
            since the noise depends on them.
        pairs: the pairs of values that are kept apart, or None for all.
        gaps: the number of time points asked about without a record, where gaps are claimed to be
            public; None without that claim. `points` leaves them out.
    """

    @property
    def usefulness(self) -> Usefulness:
        """Whether the answer is useless, rough or useful, judged by the released answer alone."""
        from quiltwork.series.releases.usefulness import usefulness_of

        return usefulness_of(self)

    def to_json(self) -> str:
        """Write the release as a document of schema `quiltwork/release`."""
        from quiltwork.series.releases.release_document import release_to_json

        return release_to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote; a custom query comes back without its function."""
        from quiltwork.series.releases.release_document import release_from_json

        return release_from_json(cls, text)

    def chart(self, confidence: Number = 0.95) -> Chart:
        """Return the value with its intervals, as a chart.

        Raises:
            UnsupportedError: for a label.
        """
        from quiltwork.series.releases.release_page import release_chart

        return release_chart(self, confidence)

    def report(
        self,
        path: str | Path,
        confidence: Number = 0.95,
        others: Belief | Sequence[Belief] | None = None,
        context: ReportContext | None = None,
    ) -> None:
        """Write a page to forward: numbers, a picture, what is protected and against whom.

        Args:
            path: where to write the HTML file.
            confidence: of the intervals.
            others: beliefs that may fit better; the page adds the privacy loss under each of them.
            context: what the release does not know: its budget and the length of a time point.
        """
        from quiltwork import files
        from quiltwork.series.releases.release_page import release_page

        files.write(files.as_path(path), release_page(self, confidence, others, context))

    def explain(self, others: Belief | Sequence[Belief] | None = None) -> str:
        """Say in plain words what was released, how, and what it protects.

        Args:
            others: beliefs that may fit better than those of the release: the privacy loss under
                each of them is added, as `qw.audit.misspecification` computes it.
        """
        from quiltwork.series.releases.release_text import explain_release

        if others is None:
            return explain_release(self)
        from quiltwork.audit import misspecification

        return f"{explain_release(self)}\n{misspecification(self, others).explain()}"

    def __eq__(self, other: object) -> bool:
        """Compare as documents."""
        return isinstance(other, Release) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """Agree with `==`."""
        return hash((self.noisy, self.noise_scale, self.belief_digest))

    def __repr__(self) -> str:
        """Show the value, the guarantee and the noise."""
        return (
            f"Release({self.query.kind}, value={self.value!r}, epsilon={self.epsilon!r}, "
            f"scale={self.scale:.6g})"
        )
