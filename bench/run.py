"""Run every bench/bench_*.py in a process of its own, or only those named on the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(names: list[str]) -> int:
    available = {path.stem.removeprefix("bench_"): path.stem for path in HERE.glob("bench_*.py")}
    unknown = [name for name in names if name not in available]
    if unknown:
        print(f"no bench is called {unknown[0]!r}; there are: {', '.join(sorted(available))}")
        return 2
    failed = []
    for name in names or sorted(available):
        command = [sys.executable, "-m", f"bench.{available[name]}"]
        if subprocess.run(command, cwd=HERE.parent, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
