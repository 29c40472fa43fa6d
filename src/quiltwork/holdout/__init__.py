"""Answers from a holdout that stay true however often, and however adaptively, one asks.

`algorithm` is Algorithm 1 on numbers, `reusable` on rows (`arrays`, `evaluation`); `guarantee` and
`holdout_plan` say what it promises under each belief (`concentration`,
`plan_alternatives`), `metrics` are made of means. `ladder` and `one_bit` are leaderboards,
`simulated_attack` climbs one, `guarding` wraps an evaluation. `owner` and `storage` keep a budget,
`transcript` and `board` are what is in its file; `studies` are tables with questions that are data,
`folders` where they are. `leaderboard` runs one over a folder and reads it, `certificates` sign its
scores; `sklearn` plugs a holdout into scikit-learn.
"""

from quiltwork._offered import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
