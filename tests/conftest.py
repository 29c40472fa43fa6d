"""What all tests share: shared data, Hypothesis profiles, order, and the list of skips."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.scheduling import ByPiece, turn

ROOT = Path(__file__).resolve().parent.parent
ALLOWED_SKIPS = ROOT / "tests" / "allowed_skips.txt"
SLOW = ROOT / "tests" / "slow_tests.txt"
IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")

os.environ.setdefault("MPLBACKEND", "Agg")
for library in ("OPENBLAS", "OMP", "MKL"):  # workers share the cores already
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

settings.register_profile("dev", deadline=None, max_examples=30)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.register_profile("evidence", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help=f"leave out what {SLOW.name} names")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        slow = set(listed(SLOW))
        left_out = [item for item in items if name_of(item) in slow]
        items[:] = [item for item in items if name_of(item) not in slow]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: turn(item.nodeid))


def name_of(item: pytest.Item) -> str:
    """A test with its file, without folders and cases: `test_grid.py::test_steps`."""
    return item.nodeid.partition("[")[0].rpartition("/")[2]


def listed(path: Path) -> list[str]:
    """The lines of a list, without its comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def pytest_collection_finish() -> None:
    """What was imported stays: looking for garbage in it again and again takes time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByPiece:
    config.option.loadscopereorder = False
    return ByPiece(config, log)


def shared_file(name: str) -> Path:
    """The path of a shared file, for example `data/adult.csv.gz`; skips the test without it."""
    folder = Path(os.environ.get("QUILTWORK_SHARED") or ROOT.parent / "shared")
    path = folder / name
    if not path.exists():
        pytest.skip(
            f"shared data absent: {name} (set QUILTWORK_SHARED to the folder that holds it)"
        )
    return path


@pytest.fixture(scope="session", name="shared_file")
def shared_file_fixture():
    """`shared_file("data/adult.csv.gz")` gives its path, or skips the test with the reason."""
    return shared_file


def skip_reasons(config: pytest.Config) -> dict[str, int]:
    """How many tests were skipped for each reason."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    counts: dict[str, int] = {}
    for report in reporter.stats.get("skipped", []) if reporter else []:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = text.removeprefix("Skipped: ")
        counts[reason] = counts.get(reason, 0) + 1
    return counts


def unexplained(config: pytest.Config) -> list[str]:
    allowed = listed(ALLOWED_SKIPS)
    return [r for r in skip_reasons(config) if not any(r.startswith(start) for start in allowed)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if IN_CI and session.exitstatus == pytest.ExitCode.OK and unexplained(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = skip_reasons(terminalreporter.config)
    terminalreporter.section("skips")
    for reason, count in sorted(counts.items()):
        terminalreporter.line(f"{count} x {reason}")
    if not counts:
        terminalreporter.line("none")
    if IN_CI and unexplained(terminalreporter.config):
        terminalreporter.line(f"refused in CI: a reason above is not in {ALLOWED_SKIPS.name}")
