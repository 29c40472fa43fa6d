"""Answers from a holdout that stay true however often, and however adaptively, one asks.

`board` is what a competition is run by: labels that nobody sees, a rule, standings, and an end.
Rules are `reusable` (Algorithm 1 of `algorithm`, asked about rows by `evaluation` and `arrays`),
`ladder` and `one_bit`. `guarantee`, `concentration` and `counting` say what they promise under each
belief, `holdout_plan` what rows it takes; `metrics` are made of means. `labels` are asked or kept
apart, `final_ranking` says at the end who is ahead. What happened is in `transcript`, one format of
lines that `sealed_log` keeps and `owner` writes; `payments` debit a ledger. `folders` say where
things are, `studies` read tables and predictions, `certificates` sign how a board stands; `sklearn`
plugs a holdout into scikit-learn.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
