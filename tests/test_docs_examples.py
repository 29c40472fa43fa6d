"""Every example in the README and the docs runs and prints what it shows.

`docs/_ext/examples.py` says how a page is run. A page with pictures is run when the site is built,
which draws them from the same run (tests/test_docs_site.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "docs" / "_ext"))

from examples import PICTURE, examples, run_page  # noqa: E402

PAGES = [
    path
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    if "_build" not in path.parts
    if examples(text := path.read_text(encoding="utf-8")) and f"```{PICTURE}" not in text
]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_example_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(page) > 0


@pytest.mark.parametrize(
    "block",
    [
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\nassert 1 + 1 == 3\n```\n",
        "```console\n$ echo two\nthree\n```\n",
        "```console\n$ exit 1\n```\n",
        "```python\nprint(2)\n```\n```output\n3\n```\n",
        "```python\nx = 1\n```\n```{picture} y\n```\n",
    ],
)
def test_a_wrong_example_is_noticed(block, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(block)
    with pytest.raises((AssertionError, NameError)):
        run_page(page)


def test_blocks_share_a_namespace_and_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nfrom pathlib import Path\nx = Path('x.txt').write_text('seen')\n```\n"
        "- indented\n  ```python\n  >>> x\n  4\n  ```\n"
        "```console\n$ cat \\\n> x.txt\nse...n\n$ true\n```\n"
    )
    assert run_page(page) == 3


def test_output_is_what_was_printed_since_the_last(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint(1)\n```\n```python\nprint(2)\n```\n```output\n1\n2\n```\n"
        "```python\nprint(3)\n```\n```output\n3\n```\n"
    )
    assert run_page(page) == 5
