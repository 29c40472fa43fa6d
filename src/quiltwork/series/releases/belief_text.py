"""A belief in words, for people who read a release and not the code.

Releases keep the text that each belief shows of itself, also in their files, so the words are made
from that text.
"""

from __future__ import annotations

import re

_KINDS = {
    "MarkovChain": "each state depends on the one before it",
    "HiddenChain": (
        "each state depends on several before it, or on how long the present one has lasted"
    ),
    "CyclicChain": "each state depends on the one before it and on the time of day or week",
    "DatedChain": "each state depends on the one before it and on the time of day or week",
    "ChainBox": (
        "each state depends on the one before it, with chances between given bounds that may "
        "change over time"
    ),
    "Network": "rows depend on each other along a given network",
    "Clusters": "rows of one cluster depend on each other in any way, and on no others",
    "GaussianSeries": "numbers that are near in time vary together",
    "GaussianRows": "rows vary together as given by their correlations",
}
_TERMS = (
    ("initial='stationary'", "in its long-run distribution from the start"),
    ("initial='any'", "with any state at the start"),
    ("initial=given", "with a given distribution at the start"),
)


def belief_words(shown: str) -> str:
    """Return in words what a belief says, from the text that it shows of itself.

    >>> belief_words("MarkovChain(2 states: 'rest', 'walk'; every 10min)")
    'each state depends on the one before it (2 states: rest, walk; every 10min)'
    """
    form = re.fullmatch(r"(\w+)\((.*)\)", shown, flags=re.DOTALL)
    if form is None or form[1] not in _KINDS:
        return shown
    details = form[2]
    for term, words in _TERMS:
        details = details.replace(term, words)
    details = re.sub(r"\b(\w+)=", r"\1 ", re.sub(r"'([^']*)'", r"\1", details))
    return f"{_KINDS[form[1]]} ({details})"
