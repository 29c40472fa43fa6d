"""The map of commands. A new command is one line here: its name and where it lives.

Commands appear in `quiltwork --help` under their group, in this order; their module is imported
only when they are asked for (or listed).
"""

from __future__ import annotations

COMMANDS: dict[str, dict[str, str]] = {
    "First": {
        "check": "quiltwork.cli.check:check",
    },
    "Time series": {
        "belief": "quiltwork.cli.belief:belief",
        "fit": "quiltwork.cli.fit:fit",
        "calibrate": "quiltwork.cli.calibrate:calibrate",
        "release": "quiltwork.cli.release:release",
        "monitor": "quiltwork.cli.monitor:monitor",
        "audit": "quiltwork.cli.audit:audit",
    },
    "Budgets": {
        "ledger": "quiltwork.cli.ledger:ledger",
    },
    "Counts": {
        "count": "quiltwork.cli.count:count",
        "remap": "quiltwork.cli.remap:remap",
    },
    "Holdouts": {
        "holdout": "quiltwork.cli.holdout:holdout",
        "leaderboard": "quiltwork.cli.leaderboard:leaderboard",
        "mcp": "quiltwork.cli.mcp:mcp",
    },
    "Tables": {
        "verify": "quiltwork.cli.verify:verify",
        "joint": "quiltwork.cli.joint:joint",
        "anonymize": "quiltwork.cli.anonymize:anonymize",
        "hierarchy": "quiltwork.cli.hierarchy:hierarchy",
        "compare": "quiltwork.cli.compare:compare",
        "risk": "quiltwork.cli.risk:risk",
    },
    "Curator": {
        "serve": "quiltwork.cli.serve:serve",
        "rotate-key": "quiltwork.cli.serve:rotate_key",
        "ask": "quiltwork.cli.ask:ask",
    },
    "Product": {
        "demo": "quiltwork.cli.product:demo",
    },
}
