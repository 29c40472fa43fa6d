"""The tests of which `make test` runs a sample, with all their seeds and many examples."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

NAME = "tests in full"
CLAIM = "what `make test` tries on a sample holds for every seed, and for 2,000 examples by default"
ROOT = Path(__file__).resolve().parents[2]


def sampled() -> list[str]:
    """The files whose tests have a size that the profile decides."""
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    sized = re.compile(r"\bsample\(|^@given", re.MULTILINE)
    texts = {path: path.read_text(encoding="utf-8") for path in found}
    return [str(p) for p, text in texts.items() if sized.search(text) and "spark" not in p.parts]


class Counted:
    """A plugin of pytest that counts what passed and tells of the progress."""

    def __init__(self, progress: Callable[[int, int], None]) -> None:
        self.progress, self.passed, self.failed, self.total = progress, 0, [], 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.total = len(items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call":
            self.passed += report.passed
            self.progress(self.passed, self.total)


def run(progress: Callable[[int, int], None]) -> dict[str, Any]:
    counted = Counted(progress)
    asked = ["-q", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-o", "timeout=0"]
    with patch.dict(os.environ, {"HYPOTHESIS_PROFILE": "evidence"}):
        code = pytest.main([*asked, f"--rootdir={ROOT}", *sampled()], plugins=[counted])
    assert not counted.failed, counted.failed
    assert code == 0, f"pytest ended with {code}"
    return {"files": len(sampled()), "tests": counted.passed, "violations": 0}
