"""Whether an answer is worth its price: a word, and the reason for it."""

from __future__ import annotations

from typing import NamedTuple

from quiltwork.budget.accounting.release_plan import verdict


class Usefulness(NamedTuple):
    """ "useless", "rough" or "useful", and why.

    Useless: the expected error is as large as what it is compared with, or no cell can be
    distinguished from 0. Rough: the error is at least a tenth.
    """

    verdict: str
    reason: str

    def __str__(self) -> str:
        """Say both."""
        return f"{self.verdict.capitalize()}: {self.reason}"

    def without(self, lost: int, cells: int, word: str) -> Usefulness:
        """Say how many cells of an answer that is never below 0 cannot be distinguished from 0.

        `lost` counts those whose 95 % interval, valid for all cells at once, reaches 0: of many
        cells some stand out by chance.
        """
        if not lost:
            return self
        verdict = "useless" if lost == cells else self.verdict
        if cells == 1:
            many = "It cannot be distinguished from 0: its 95 % interval reaches it."
        else:
            many = (
                f"{lost} of {cells} {word}s cannot be distinguished from 0: their 95 % intervals, "
                "valid for all at once, reach it."
            )
        return Usefulness(verdict, f"{self.reason} {many}")


def judged(error: float, signal: float, of: str) -> Usefulness:
    """Judge an expected error by what it is compared with, which `of` names.

    >>> print(judged(3, 60, "the largest number"))
    Useful: the expected error of 3 is 5 % of the largest number.
    """
    share = f"{100 * error / signal:.3g} %" if signal > 0 else "more than all"
    reason = f"the expected error of {error:.4g} is {share} of {of}."
    return Usefulness(verdict(error, signal), reason)
