"""Budgets that survive: durable debits before every release, in SQLite or PostgreSQL.

`ledger` is what users open, and `readable` what auditors can. `entries` are the chain of hashes and
`log` where they are read and appended; `state` is what a dataset's entries amount to and what it
grants, by its `claims` of ε or (ε, δ); `snapshots` save adding them up again, `bounds` say by which
version of the theorems. `debits`, `requests`, `shares` and `notes` are what is asked and recorded;
`store` makes it durable in one of the `databases`, `sqlite` or `postgres`, that `urls` name;
`verification`, `backups` and `checkpoints` look after it.
"""
