"""Run the full counts behind the guarantees and keep what they found.

Every module of evidence/checks states what it shows (`NAME`, `CLAIM`) and has `run(progress)`,
which raises AssertionError at the first counterexample and returns its counts as a dict or as
lines of text. Each result is a small text file in evidence/results, written once the check has
passed, so that an interrupted run goes on where it stopped: a check is run again only when its
own source or a room of the package that it used has changed, or with --force.

    python -m evidence.run [--force] [name …]
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import time
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
CHECKS = HERE / "checks"
RESULTS = HERE / "results"
PACKAGE = HERE.parent / "src" / "quiltwork"
PAPERS = HERE.parent / "papers"


def progress(done: int, total: int) -> None:
    """One line that overwrites itself; silent when the output is not a terminal."""
    if sys.stderr.isatty():
        end = "\n" if done >= total else ""
        print(f"\r  {done:,} of {total:,}", end=end, file=sys.stderr, flush=True)


def rooms_in_use() -> list[str]:
    """The rooms of the package that are loaded now, and what only the papers need if it is."""
    names = {name.split(".")[1] for name in sys.modules if name.startswith("quiltwork.")}
    rooms = [name for name in names if (PACKAGE / name).is_dir()]
    return sorted([*rooms, *(["papers"] if "papers" in sys.modules else [])])


def fingerprint(check: ModuleType, rooms: Iterable[str]) -> str:
    """A digest of the check's own source and of the rooms it used."""
    digest = hashlib.sha256()
    folders = [PAPERS if room == "papers" else PACKAGE / room for room in rooms]
    files = [path for folder in folders for path in sorted(folder.rglob("*.[chp]*"))]
    files = [path for path in files if path.suffix in {".py", ".c", ".h"}]
    shared = sorted(PACKAGE.glob("[!_]*.py"))
    for path in [*shared, *files, Path(str(check.__file__))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def unchanged(check: ModuleType, result: Path) -> bool:
    """Whether the stored result was found on the present source."""
    stored = dict(
        line.split(": ", 1)
        for line in (result.read_text(encoding="utf-8").splitlines() if result.exists() else [])
        if line.startswith(("rooms: ", "source: "))
    )
    if "rooms" not in stored:
        return False
    return stored.get("source") == fingerprint(check, stored["rooms"].split())


def as_lines(counts: Mapping[str, object] | Iterable[str] | str) -> list[str]:
    if isinstance(counts, str):
        return counts.splitlines()
    if isinstance(counts, Mapping):
        return [f"{key}: {_number(value)}" for key, value in counts.items()]
    return list(counts)


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def run_check(name: str, force: bool, folder: Path = RESULTS) -> bool:
    """Whether the check holds; its result is stored if it does."""
    check = importlib.import_module(f"evidence.checks.{name}")
    result = folder / f"{name}.txt"
    print(f"{check.NAME}: {check.CLAIM}")
    if not force and unchanged(check, result):
        print(f"  unchanged since the last run: {result}")
        return True
    start = time.monotonic()
    try:
        lines = as_lines(check.run(progress))
    except Exception:
        traceback.print_exc()
        print("  FAILED: the claim does not hold, or the check itself broke")
        return False
    for line in lines:
        print(f"  {line}")
    print(f"  holds ({time.monotonic() - start:.0f} s)")
    folder.mkdir(exist_ok=True)
    rooms = rooms_in_use()
    stamp = [f"rooms: {' '.join(rooms)}", f"source: {fingerprint(check, rooms)}"]
    body = "\n".join([check.NAME, check.CLAIM, "", *lines, "", *stamp])
    result.write_text(body + "\n", encoding="utf-8")
    return True


def main(arguments: list[str]) -> int:
    force = "--force" in arguments
    names = [argument for argument in arguments if argument != "--force"]
    available = sorted(path.stem for path in CHECKS.glob("*.py") if path.stem != "__init__")
    unknown = [name for name in names if name not in available]
    if unknown:
        print(f"no check is called {unknown[0]!r}; there are: {', '.join(available)}")
        return 2
    failed = [name for name in names or available if not run_check(name, force)]
    print(f"{len(names or available) - len(failed)} hold, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
