"""Durable budgets: every release is debited before it is made, in SQLite or PostgreSQL.

`ledger` is the class that users open. `entries` form a chain of hashes, `log` reads and appends
them; `state` folds a dataset's entries and decides what it grants, under its `claims` of ε or
(ε, δ); `snapshots` cache states. `requests` parses what callers give; `debits`, `shares` and
`notes` are what is appended, and `ledger_records` what is returned. `store` makes transactions
durable in one of the `databases`, `sqlite` (with `writer_election`) or `postgres`, named by `urls`,
with the tables of `schema`. `verification`, `backups` and `checkpoints` look after a ledger;
`ledger_accountant` is an accountant whose releases are debits.
"""
