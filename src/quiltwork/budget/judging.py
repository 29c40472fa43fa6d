"""Whether an answer is worth its price: a word, and the reason for it."""

from __future__ import annotations

from typing import NamedTuple

from quiltwork.budget.accounting.planning import verdict


class Usefulness(NamedTuple):
    """ "useless", "rough" or "useful", and why.

    Useless: the expected error is as large as what it is compared with, or nothing can be told from
    0. Rough: the error is at least a tenth.
    """

    verdict: str
    reason: str

    def __str__(self) -> str:
        """Say both."""
        return f"{self.verdict.capitalize()}: {self.reason}"

    def without(self, lost: int, cells: int, word: str) -> Usefulness:
        """Say how many cells of an answer that is never below 0 cannot be told from 0."""
        if not lost:
            return self
        many = f"{lost} of {cells} {word}s" if cells > 1 else "It"
        verdict = "useless" if lost == cells else self.verdict
        return Usefulness(verdict, f"{self.reason} {many} cannot be told from 0.")


def judged(error: float, signal: float, of: str) -> Usefulness:
    """Judge an expected error by what it is compared with, which `of` names.

    >>> print(judged(3, 60, "the largest number"))
    Useful: the expected error of 3 is 5 % of the largest number.
    """
    share = f"{100 * error / signal:.3g} %" if signal > 0 else "more than all"
    reason = f"the expected error of {error:.4g} is {share} of {of}."
    return Usefulness(verdict(error, signal), reason)
