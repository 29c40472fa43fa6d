"""The joint cost of many releases from the same data, and how to plan them.

`accountant` holds an `account`, whose `usage` are the charges of all releases on each time point;
`worst_point` turns these into leakage by the sweep (clusters and networks with cycles pay for
nearby rows). For (ε, δ) the same are `gaussian_accountant`, `gaussian_account`, `squares` and
`caps`; `series_accountant` is their common base, and `growth` lets a series grow. `headroom`
computes what still fits, `compose` and `theorems` have the composition theorems, `planning` the
noise of planned releases (`schedule`, `release_plan`, `expected_errors`), and `stored_plan` makes
them one by one.
"""
