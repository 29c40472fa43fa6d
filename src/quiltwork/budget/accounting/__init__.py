"""What many releases from the same data cost together, and how to plan them.

`accountant` asks an `account`, whose `usage` is what all releases spend on each time point;
`worst_point` hands that to the sweep (clusters and networks with cycles pay for nearby rows) and
gets a number. Of (ε, δ) it is `gaussian_accountant`, `gaussian_account`, `squares` and `caps`;
`series_accountant` is what both have in common. `limits` says what still fits, `theorems` and
`compose` what each theorem says, `planning` the noise for releases to come, and `stored_plan` makes
them one by one.
"""
