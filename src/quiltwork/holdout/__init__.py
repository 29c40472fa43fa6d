"""Answers from a holdout that stay true however often, and however adaptively, one asks.

`algorithm` is Algorithm 1 on numbers, `reusable` on rows (`arrays`, `evaluation`); `guarantee` and
`holdout_plan` say what it promises under each belief (`concentration`, `max_information`); `ladder`
is the leaderboard, `climber` who attacks it, `guarding` wraps an evaluation in either; `counting`
is what promises rest on. `owner` and `storage` keep a budget, `transcript` and `board` are what is
in its file; `questions` are data; `sklearn` plugs it into scikit-learn.
"""

from quiltwork._lazy import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
