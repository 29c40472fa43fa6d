from __future__ import annotations

import os
import subprocess
import sys


def test_commands_and_options_are_completed():
    def complete(words: str, word: int) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", "from quiltwork.cli import main; main()"],
            env={
                **os.environ,
                "_QUILTWORK_COMPLETE": "bash_complete",
                "COMP_WORDS": words,
                "COMP_CWORD": str(word),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.split(",")[1] for line in done.stdout.splitlines()]

    assert complete("quiltwork co", 1) == ["count", "compare"]
    assert "--epsilon" in complete("quiltwork count --", 2)
