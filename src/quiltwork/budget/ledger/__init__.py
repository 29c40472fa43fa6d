"""The budget ledger: durable debits before every release, in SQLite or PostgreSQL."""
