"""Answers from a holdout that stay true however often, and however adaptively, one asks.

`algorithm` is Algorithm 1 on numbers, `reusable` on `datasets` and `statistics`; `guarantee` and
`planning` say what it promises under each belief (`concentration`, `max_information`); `ladder` is
the leaderboard, `guarding` wraps an evaluation in either, `counting` is what a promise rests on.
`owner` and `storage` keep a budget, `transcript` and `board` are what is in its file; `questions`
are data; `sklearn` plugs it into scikit-learn.
"""

from quiltwork._lazy import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
