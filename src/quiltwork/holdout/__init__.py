"""Holdouts and leaderboards whose answers stay accurate however often, and adaptively, one asks.

`board` runs a competition over secret labels: a rule, standings, and a final ranking. The rules are
`reusable` (Algorithm 1 of `algorithm`, evaluated on rows by `evaluation` and `arrays`), `ladder`
and `one_bit`. `guarantee`, `concentration`, `counting` and `dobrushin` bound their errors under
each belief; `holdout_plan` computes the rows a guarantee takes; `metrics` are functions of means.
`label_table` splits labels into rows asked and rows kept for `final_ranking`. `transcript` is the
one format of a log, `sealed_log` stores it, `single_process` guards objects with a budget, and
`payments` debit a ledger. `folders` locates files, `prediction_tables` reads tables and
predictions, `board_certificates` signs standings, and `sklearn` plugs a holdout into scikit-learn.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
