"""The beliefs of a release in words, also those of releases that were stored as Python shows them.

A release stores `Belief.summary()` of its beliefs. Earlier versions stored their `repr`, which is
put into words here.
"""

from __future__ import annotations

import re

_BY_THE_CLOCK = (
    "a chain in which each state depends on the one before it and on the time of day or week"
)
_KINDS = {
    "MarkovChain": "a chain in which each state depends on the one before it",
    "HiddenChain": (
        "a chain in which each state depends on several before it, or on how long the present one "
        "has lasted"
    ),
    "CyclicChain": _BY_THE_CLOCK,
    "DatedChain": _BY_THE_CLOCK,
    "ChainBox": (
        "any chain in which each state depends on the one before it, with chances between given "
        "bounds that may change over time"
    ),
    "Network": "rows that depend on each other along a given network",
    "Clusters": "rows that depend on each other in any way within a cluster, and on no others",
    "GaussianSeries": "numbers that vary together if they are near in time",
    "GaussianRows": "rows that vary together as given by their correlations",
}
_TERMS = (
    ("initial='stationary'", "in its long-run distribution from the start"),
    ("initial='any'", "with any state at the start"),
    ("initial=given", "with a given distribution at the start"),
)


def belief_words(shown: str) -> str:
    """Return a belief of a release in words: its summary, or an earlier version's `repr` put so.

    >>> belief_words("MarkovChain(2 states: 'rest', 'walk'; every 10min)")
    'a chain in which each state depends on the one before it (2 states: rest, walk; every 10min)'
    """
    form = re.fullmatch(r"(\w+)\((.*)\)", shown, flags=re.DOTALL)
    if form is None or form[1] not in _KINDS:
        return shown
    details = form[2]
    for term, words in _TERMS:
        details = details.replace(term, words)
    details = re.sub(r"\b(\w+)=", r"\1 ", re.sub(r"'([^']*)'", r"\1", details))
    return f"{_KINDS[form[1]]} ({details})"
