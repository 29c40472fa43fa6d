"""Faults for the ledger to survive: contention, crashes, power loss, full disks, lost connections.

Each module has functions that run trials and return how many there were and what went wrong;
`evidence/checks/ledger_faults.py` runs all of them, `tests/budget/ledger` a sample of each.
"""
