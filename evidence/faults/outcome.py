"""How many trials a fault had, and what went wrong in which."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """Trials and violations of one kind of fault; `note` says what was left out, and why."""

    name: str
    trials: int = 0
    violations: list[str] = field(default_factory=list)
    note: str = ""

    def add(self, problem: str | None) -> None:
        """Count a trial, with what went wrong if anything did."""
        self.trials += 1
        if problem:
            self.violations.append(problem)

    def line(self) -> str:
        """Say it in one line."""
        found = f"{self.trials:,} trials, {len(self.violations)} violations"
        first = f"; first: {self.violations[0]}" if self.violations else ""
        return f"{self.name}: {found}{first}{f' ({self.note})' if self.note else ''}"
