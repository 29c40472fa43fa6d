"""Usefulness of an answer: a verdict in a word, and the reason for it."""

from __future__ import annotations

from typing import NamedTuple

from quiltwork.budget.accounting.release_plan import verdict


class Usefulness(NamedTuple):
    """The verdict "useless", "rough" or "useful", and the reason.

    Useless: the expected error is as large as the signal, or no cell can be distinguished from 0.
    Rough: the error is at least a tenth of the signal.
    """

    verdict: str
    reason: str

    def __str__(self) -> str:
        """Return verdict and reason."""
        return f"{self.verdict.capitalize()}: {self.reason}"

    def with_lost_cells(self, lost: int, cells: int, noun: str) -> Usefulness:
        """Add how many cells of a nonnegative answer cannot be distinguished from 0.

        `lost` counts those whose 95 % interval, valid for all cells at once, contains 0: without
        that correction some of many cells would stand out by chance.
        """
        if not lost:
            return self
        verdict = "useless" if lost == cells else self.verdict
        if cells == 1:
            sentence = "It cannot be distinguished from 0: its 95 % interval reaches it."
        else:
            sentence = (
                f"{lost} of {cells} {noun}s cannot be distinguished from 0: their 95 % intervals, "
                "valid for all at once, reach it."
            )
        return Usefulness(verdict, f"{self.reason} {sentence}")


def judge(error: float, signal: float, signal_name: str) -> Usefulness:
    """Judge an expected error by the size of the signal, which is named in the reason.

    >>> print(judge(3, 60, "the largest number"))
    Useful: the expected error of 3 is 5 % of the largest number.
    """
    share = f"{100 * error / signal:.3g} %" if signal > 0 else "more than all"
    reason = f"the expected error of {error:.4g} is {share} of {signal_name}."
    return Usefulness(verdict(error, signal), reason)
