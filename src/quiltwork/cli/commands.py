"""The table of commands: a new command is one line with its name, its module and its summary.

`quiltwork --help` lists commands by topic, in this order. A module is imported only when its
command is used. The summary is the first sentence of the command's help; a test keeps them equal.
"""

from __future__ import annotations

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "First": {
        "check": (
            "quiltwork.cli.check:check",
            "Look at your own files: how they are read, and what is odd.",
        ),
    },
    "Time series": {
        "belief": (
            "quiltwork.cli.belief_make:belief",
            "Choose a belief by a few answers, or check one.",
        ),
        "fit": (
            "quiltwork.cli.fit:fit",
            "Fit beliefs on FILE, for use with `calibrate` and `release`.",
        ),
        "calibrate": (
            "quiltwork.cli.calibrate:calibrate",
            "Compute the noise scale that beliefs require.",
        ),
        "release": (
            "quiltwork.cli.release:release",
            "Release an answer about FILE under the given beliefs.",
        ),
        "monitor": (
            "quiltwork.cli.monitor:monitor",
            "Compute the true leakage of plain DP at every step.",
        ),
        "audit": (
            "quiltwork.cli.audit:audit",
            "Compute the exact leakage of a release or a ledger.",
        ),
    },
    "Budgets": {
        "ledger": (
            "quiltwork.cli.ledger_commands:ledger",
            "Keep durable budgets: debit before release.",
        ),
    },
    "Counts": {
        "count": ("quiltwork.cli.count:count", "Release private counts with their intervals."),
        "remap": (
            "quiltwork.cli.remap_command:remap",
            "Read released counts as one consumer should.",
        ),
    },
    "Holdouts": {
        "holdout": (
            "quiltwork.cli.holdout_commands:holdout",
            "Reuse a holdout, with answers that stay accurate.",
        ),
        "leaderboard": (
            "quiltwork.cli.leaderboard:leaderboard",
            "Score predictions accurately, and rank teams at the end.",
        ),
        "mcp": ("quiltwork.cli.mcp:mcp", "Serve a leaderboard to agents."),
    },
    "Tables": {
        "verify": ("quiltwork.cli.verify:verify", "Check a table against colluding providers."),
        "joint": ("quiltwork.cli.joint:joint", "Verify boxes with others; no row leaves you."),
        "anonymize": (
            "quiltwork.cli.anonymize:anonymize",
            "Anonymize the records of several providers.",
        ),
        "hierarchy": (
            "quiltwork.cli.hierarchy:hierarchy",
            "Make a hierarchy for a column, in ARX's format.",
        ),
        "compare": (
            "quiltwork.cli.compare:compare",
            "Compare candidate tables before one is published.",
        ),
        "risk": ("quiltwork.cli.risk:risk", "Measure what a table reveals as it stands."),
    },
    "Curator": {
        "serve": (
            "quiltwork.cli.serve:serve",
            "Run a curator: the trusted third party for a team.",
        ),
        "rotate-key": ("quiltwork.cli.serve:rotate_key", "Change the key of a curator's files."),
        "ask": ("quiltwork.cli.ask:ask", "Ask a curator about its DATASET."),
    },
    "Product": {
        "demo": (
            "quiltwork.cli.product:demo",
            "Show what quiltwork does on simulated data, in a few seconds.",
        ),
    },
}
