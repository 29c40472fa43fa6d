"""Budgets that survive: durable debits before every release, in SQLite or PostgreSQL.

`ledger` is what users open, and `readable` what auditors can; `debits` and `requests` read and
price what is asked, `datasets` and `shares` say what may be spent, `entries` are the hash chain and
`totals` the sums beside it, as `total_rows` and `account_rows`; `store`, `sqlite` and `postgres`
write; `verification`, `backups`, `checkpoints` and `moving` look after it.
"""
