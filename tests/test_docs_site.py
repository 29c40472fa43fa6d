"""The documentation site builds offline, without warnings, complete, and loads nothing remote."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest

import quiltwork

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
sys.path.append(str(DOCS / "_ext"))

from examples import blocks  # noqa: E402
from narrow import narrow  # noqa: E402
from notebooks import code_of  # noqa: E402

LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    folders = ["-d", str(target / "doctrees"), str(DOCS), str(target / "html")]
    done = subprocess.run([*command, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target / "html"


class Loads(HTMLParser):
    """Collects every address that a page loads by itself (not the links a reader may follow)."""

    def __init__(self):
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag in LOADING and values.get("rel") not in ("canonical", "author", "license"):
            self.addresses.append(values.get(LOADING[tag]) or "")


def remote_loads(html: str) -> list[str]:
    parser = Loads()
    parser.feed(html)
    return [address for address in parser.addresses if re.match(r"(https?:)?//", address)]


def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 5
    for page in pages:
        assert remote_loads(page.read_text(encoding="utf-8")) == [], page.name
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", text), sheet.name


def test_a_remote_script_would_be_noticed():
    page = '<a href="https://a.org"><script src="https://b.org/x.js"></script><link href="//c.org">'
    assert remote_loads(page) == ["https://b.org/x.js", "//c.org"]


def test_pictures_are_drawn_by_the_code_of_their_page(site):
    for page in ("gallery.html", "tutorials/a-week-of-activity.html"):
        source = (DOCS / page).with_suffix(".md").read_text(encoding="utf-8")
        text = (site / page).read_text(encoding="utf-8")
        asked = source.count("```{picture}")
        assert asked
        assert text.count('role="img"') == 2 * asked  # wide and narrow
        assert "var(--c1)" in text
    assert "data-theme=dark" in (site / "_static" / "charts.css").read_text(encoding="utf-8")


def test_a_stored_chart_for_phones_has_every_line_within_its_width():
    wide = (DOCS / "_generated" / "activity-histograms-five.svg").read_text(encoding="utf-8")
    small = narrow(wide)
    assert 'viewBox="0 0 370 ' in small
    assert all(f">{name}<" in small for name in ("sweep", "group", "epsilon", "expected L1 error"))
    lines = [re.findall(r'points="([^"]+)"', svg)[6:] for svg in (wide, small)]  # after the legend
    assert [len(one.split()) for one in lines[0]] == [len(one.split()) for one in lines[1]]
    assert max(float(x) for one in lines[1] for x in re.findall(r"([\d.]+),", one)) <= 354
    assert narrow((DOCS / "_generated" / "holdout-figure-1-quilts.svg").read_text()) is None


def test_a_notebook_has_the_code_of_its_page(site):
    found = list((site / "tutorials").glob("*.ipynb"))
    assert len(found) == 3
    for path in found:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        page = (DOCS / "tutorials" / path.name).with_suffix(".md").read_text(encoding="utf-8")
        assert code == [code_of(block.text) for block in blocks(page) if block.language == "python"]
        assert ">>>" not in "".join(code)
        text = "".join("".join(cell["source"]) for cell in cells)
        assert not any(left in text for left in ("](../", "{picture}", "```"))


@pytest.mark.parametrize(
    ("word", "first", "other"),
    [
        ("timezone", "how-to/read-a-series", "reference/api/series"),
        ("epsilon", "concepts/epsilon", "reference/api/budget"),
        ("household", "how-to/counts", "reference/api/beliefs"),
    ],
)
def test_the_search_finds_what_people_look_for(site, word, first, other):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))
    main = [page for page, _, is_main in index["indexentries"][word] if is_main]
    assert main == [index["docnames"].index(first)]  # what search.html ranks above all else
    stem = word.removesuffix("e")
    found = index["terms"].get(word, index["terms"].get(stem))
    assert index["docnames"].index(other) in found


def test_formulae_are_mathml(site):
    pages = [page.read_text(encoding="utf-8") for page in site.rglob("*.html")]
    assert any("<math " in page for page in pages), "no page shows a formula"
    unknown = [c for page in pages for c in re.findall(r"<m\w+[^>]*>(\\[A-Za-z]+)", page)]
    assert not unknown, f"the converter does not know {unknown}; write it another way"
    assert not any(re.search(r"<script[^>]*(mathjax|katex)", page, re.I) for page in pages)
    plain = [re.sub(r"<(pre|code|math|svg)\b.*?</\1>", "", page, flags=re.S) for page in pages]
    left = [found for page in plain for found in re.findall(r"\$?\\[a-z]{3,}.{0,40}", page)]
    assert not left, f"a line of a formula began like a list: {left}"


def documented_names() -> set[str]:
    text = "\n".join(p.read_text(encoding="utf-8") for p in (DOCS / "reference").rglob("*.md"))
    return {
        line.removeprefix("quiltwork.").strip()
        for block in re.findall(r"^```\{api\}\n(.*?)^```", text, flags=re.M | re.S)
        for line in block.splitlines()
    }


def public_names() -> list[str]:
    """The names of `quiltwork` that exist; the facade may announce rooms that are still empty."""
    return [name for name in quiltwork.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_is_in_the_reference_and_has_a_docstring(name):
    value = getattr(quiltwork, name)
    assert inspect.getdoc(value), f"quiltwork.{name} has no docstring"
    assert name in documented_names(), f"add quiltwork.{name} to a page of docs/reference"


SYSTEMS = ("budget", "client", "counts", "holdout", "series", "tables", "tables.risk")


def room_names(rooms: tuple[str, ...]) -> dict[str, object]:
    """What the rooms offer beyond the facade."""
    return {
        f"{room}.{name}": value
        for room in rooms
        for module in [importlib.import_module(f"quiltwork.{room}")]
        for name in module.__all__
        for value in [getattr(module, name)]
        if getattr(quiltwork, name, None) is not value
    }


def test_every_function_and_class_of_a_system_is_in_the_reference():
    callables = {name for name, value in room_names(SYSTEMS).items() if callable(value)}
    assert callables <= documented_names()


def test_the_reference_names_only_what_exists():
    assert documented_names() <= {
        *public_names(),
        *room_names((*SYSTEMS, "beliefs", "influence")),
    }


@pytest.mark.parametrize(
    "page", sorted((DOCS / "reference" / "api").glob("*.md")), ids=lambda p: p.stem
)
def test_every_page_of_the_reference_begins_with_an_example(page):
    text = page.read_text(encoding="utf-8")
    if page.stem != "index":
        assert 0 < text.index("```python\n>>> ") < text.index("```{api}")


STYLE = re.compile(r"\s*Theorem: docs/theory/[\w-]+\.md(, docs/theory/[\w-]+\.md)*( \([^()]+\))?")


def theorem_lines() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    return [line for text in texts for line in text.splitlines() if "Theorem:" in line]


def theorem_pages() -> set[str]:
    return {page for line in theorem_lines() for page in re.findall(r"theory/([\w-]+)\.md", line)}


def test_theorems_are_named_in_one_style():
    other = [line for line in theorem_lines() if not STYLE.fullmatch(line)]
    assert not other, "write `Theorem: docs/theory/page.md (part)` on a line of its own"
    assert len(theorem_lines()) > 100


@pytest.mark.parametrize("page", sorted(theorem_pages()))
def test_every_theorem_named_in_a_docstring_has_its_page(page):
    assert (DOCS / "theory" / f"{page}.md").exists()


def test_no_theory_page_has_a_section_twice():
    for page in (DOCS / "theory").glob("*.md"):
        found = re.findall(r"^#+ .+", page.read_text("utf-8"), re.MULTILINE)
        assert len(found) == len(set(found)), page.name


def test_every_test_that_a_page_names_exists():
    named = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")
    pages = {one: one.read_text("utf-8") for one in DOCS.rglob("*.md")}
    found = {(page.name, *one) for page, text in pages.items() for one in named.findall(text)}
    assert len(found) > 100
    for page, file, test in found:
        assert (DOCS.parent / file).exists(), f"{page} names {file}"
        text = (DOCS.parent / file).read_text("utf-8")
        assert not test or re.search(rf"(def|class) {test}\b", text), f"{page} names {test}"


def commands(group: click.Group, prefix: tuple[str, ...] = ()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*prefix, name))
        else:
            yield (*prefix, name), command


def test_every_command_has_an_example_in_its_help():
    from quiltwork.cli.root_command import app

    found = list(commands(app))
    assert found
    for path, command in found:
        help_text = command.get_help(click.Context(command, info_name=path[-1]))
        example = f"quiltwork {' '.join(path)}"
        assert re.search(rf"Example.*{example}", help_text, re.S), f"no example: {example}"
        assert "--json" in help_text, f"no --json: {example}"


def test_every_command_is_in_the_reference(site):
    from quiltwork.cli.root_command import app

    page = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for path, _ in commands(app):
        assert f"quiltwork {' '.join(path)}" in page
