"""Every JSON document names its schema and version, is documented, and survives a round trip."""

from __future__ import annotations

import ast
import json
import os
import re
import threading
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import files
from quiltwork.cli.tabulate import tally
from quiltwork.errors import InvalidInputError
from quiltwork.results import ResultBase
from quiltwork.series import read_series

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8")

TEXT = st.text(max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
BODY = st.dictionaries(TEXT.filter(lambda key: key not in ("schema", "version")), JSON, max_size=4)


@given(body=BODY, version=st.integers(1, 9))
def test_what_is_written_is_read_back(body, version):
    text = files.dump("example", version, body)
    document = files.load(text, "example", (version,))
    assert document == {"schema": "quiltwork/example", "version": version, **body}
    assert files.dump("example", version, body) == text
    assert files.load(text.encode(), "example", (version,)) == document


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "JSON"),
        (b"\xff", "JSON"),
        ("[1]", "found None"),
        ('{"schema": "quiltwork/other", "version": 1}', "quiltwork/other"),
        ('{"schema": "quiltwork/example", "version": 7}', "upgrade"),
        ('{"schema": "quiltwork/example"}', "None"),
    ],
)
def test_another_document_is_refused(text, words):
    with pytest.raises(InvalidInputError, match=words):
        files.load(text, "example", (1, 2))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_has_not_are_never_written(value):
    with pytest.raises(ValueError, match="JSON"):
        files.dump("example", 1, {"value": value})


def calls_of_dump(path: Path) -> Iterator[tuple[ast.Call, ast.Module]]:
    text = path.read_text(encoding="utf-8")
    if "dump" not in text:
        return
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("files.dump", "dump"):
            yield node, tree


def assigned(tree: ast.Module, name: str) -> list[object]:
    """The constants that a module or its classes assign to a name."""
    found = []
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            found += [
                value.value
                for one, value in zip(names, values, strict=False)
                if ast.unparse(one) == name and isinstance(value, ast.Constant)
            ]
    return found


def resolve(argument: ast.expr, tree: ast.Module) -> list[object]:
    if isinstance(argument, ast.Constant):
        return [argument.value]
    return assigned(tree, ast.unparse(argument).rpartition(".")[2])


def schemas_of_results(path: Path) -> list[tuple[object, object]]:
    """What classes of results name as their `schema`."""
    text = path.read_text(encoding="utf-8")
    if "schema = (" not in text:
        return []
    tree = ast.parse(text)
    return [
        (name, version)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "schema"
        if isinstance(node.value, ast.Tuple)
        for name, version in product(*(resolve(part, tree) for part in node.value.elts))
    ]


@cache
def written_schemas() -> dict[str, set[object]]:
    """The versions of every schema that the source writes."""
    found: dict[str, set[object]] = {f"quiltwork/{ResultBase.schema[0]}": {1}}
    sources = [*(ROOT / "src" / "quiltwork").rglob("*.py"), *(ROOT / "papers").rglob("*.py")]
    for path in sorted(sources):
        if path.name in ("files.py", "results.py"):
            continue
        if path.parent.name == "beliefs":
            for name in assigned(ast.parse(path.read_text(encoding="utf-8")), "schema"):
                found.setdefault(f"quiltwork/{name}", set()).add(1)
        if path.match("beliefs/belief.py"):  # writes what each of the others names as its schema
            continue
        for name, version in schemas_of_results(path):
            found.setdefault(f"quiltwork/{name}", set()).add(version)
        for call, tree in calls_of_dump(path):
            names, versions = resolve(call.args[0], tree), resolve(call.args[1], tree)
            assert names, f"{path}:{call.lineno}: write the schema's name as a constant"
            assert versions, f"{path}:{call.lineno}: write the version as a constant"
            for name in names:
                found.setdefault(f"quiltwork/{name}", set()).update(versions)
    return found


def documented() -> dict[str, str]:
    """The section of each schema on the reference page."""
    parts = re.split(r"^### `(quiltwork/[\w/-]+)`$", PAGE, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def fields(section: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", section, flags=re.M))


def test_every_schema_that_is_written_is_documented_with_its_version():
    written, sections = written_schemas(), documented()
    missing = sorted(set(written) - set(sections))
    assert not missing, f"docs/reference/files.md needs a section for: {', '.join(missing)}"
    stale = sorted(set(sections) - set(written))
    assert not stale, f"docs/reference/files.md describes what nothing writes: {', '.join(stale)}"
    for name, versions in written.items():
        assert f"Version {max(versions)}." in sections[name], name


def test_the_source_is_searched_thoroughly():
    written = written_schemas()
    assert {"quiltwork/error", "quiltwork/belief/clusters", "quiltwork/belief/set"} <= set(written)


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """A real document of each schema that can be made quickly."""
    return list(_documents(tmp_path_factory.mktemp("documents")))


def _documents(folder: Path) -> Iterator[str]:
    from contextlib import redirect_stderr, redirect_stdout
    from io import StringIO

    import quiltwork as qw
    from papers.command import reproduce
    from quiltwork.beliefs import beliefs_to_json
    from quiltwork.cli.boundary import run
    from quiltwork.cli.root_command import app

    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    yield chain.to_json()
    yield qw.ChainBox([[0.8, 0.1], [0.3, 0.5]], [[0.9, 0.2], [0.5, 0.7]]).to_json()
    yield qw.Clusters(["a", "a", "b"]).to_json()
    yield beliefs_to_json([chain, qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])])
    yield qw.calibrate(chain, 20, 1).to_json()
    yield qw.release([0, 1] * 10, qw.queries.histogram(), chain, epsilon=1).to_json()
    yield qw.GeometricMechanism(5, alpha=0.5).remap(qw.Consumer("uniform")).to_json()
    belief = folder / "belief.json"
    belief.write_text(chain.to_json(), encoding="utf-8")
    url = f"sqlite:///{folder / 'budget.db'}"
    rows = folder / "rows.csv"
    rows.write_text("sex\nf\nm\n", encoding="utf-8")
    patients = folder / "patients.csv"
    patients.write_text("p,age,ill\nA,20..30,flu\nB,20..30,cold\n", encoding="utf-8")
    roles = ["--quasi", "age", "--sensitive", "ill", "--k", "1"]
    for arguments in (
        ["count", str(rows), "--by", "sex", "--epsilon", "1", "--categories-from-data"],
        ["count", "--value", "5", "--n", "9", "--epsilon", "1"],
        ["calibrate", str(belief), "--length", "20", "--epsilon", "1", "--compare"],
        ["ledger", "create", url, "d", "--belief", str(belief), "--length", "20", "--budget", "1"],
        ["ledger", "history", url, "d"],
        ["ledger", "plan", url, "d", "--ask", "histogram"],
        ["ledger", "verify", url],
        ["demo", "--output", str(folder / "demo")],
        ["reproduce", "--list"],
        ["reproduce", "geometric-figure-2", "--output", str(folder / "out")],
        ["check", str(patients)],
        ["verify", str(patients), "--provider", "p", *roles],
        ["verify", str(patients), "--own", str(patients), *roles],
        ["nonsense"],
    ):
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            reproducing = arguments[0] == "reproduce"
            run([*arguments[reproducing:], "--json"], reproduce if reproducing else app)
        yield from (line for text in (out, err) for line in text.getvalue().splitlines())
    yield from (path.read_text() for path in (folder / "out" / "results").glob("*.json"))


ONLY_SOMETIMES = {"assumed_step", "delta", "fitted", "pairs", "period", "shortfall"}


def test_documents_have_the_documented_fields_and_round_trip(documents):
    sections, seen = documented(), set()
    for text in documents:
        document = json.loads(text)
        name = document.pop("schema")
        version = document.pop("version")
        seen.add(name)
        missing = fields(sections[name]) - set(document)
        assert missing <= ONLY_SOMETIMES, name
        assert set(document) <= fields(sections[name]), name
        again = files.load(text, name.removeprefix("quiltwork/"), (version,))
        assert files.dump(name.removeprefix("quiltwork/"), version, document) == text
        assert again == {**document, "schema": name, "version": version}
        if name == "quiltwork/counts":
            assert set(document["table"]) - {"schema", "version"} == fields(
                sections["quiltwork/count-table"]
            )
    assert len(seen) >= 14


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full"])
def test_a_device_is_refused_before_it_is_read(path):
    with pytest.raises(InvalidInputError, match="is a device"):
        files.read_bytes(path)
    with pytest.raises(InvalidInputError, match="is a device"):
        read_series(path, "value")
    with pytest.raises(InvalidInputError, match="is a device"):
        tally(path, ["value"], [])


def test_a_pipe_is_read_and_a_folder_is_not(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"{}",))
    writer.start()
    assert files.read_bytes(pipe) == b"{}"
    writer.join()
    with pytest.raises(InvalidInputError, match="Is a directory"):
        files.read_bytes(tmp_path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a": ' * 100_000, b"\xff", "", 5, None, "1" * 5000]
)
def test_text_that_no_reader_gets_through_is_refused(text):
    with pytest.raises(InvalidInputError, match="JSON document"):
        files.parse(text)


def test_private_files_are_their_owners_only_even_where_another_was(tmp_path):
    path = tmp_path / "secret.json"
    for _ in range(2):
        files.write(path, "x", files.OWNER_ONLY)
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
    files.write(path, "y")
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("path", [None, 5, b"x", "", "a\0b", object(), ["x"]])
def test_what_names_no_file_is_refused(path):
    with pytest.raises(InvalidInputError, match="name of a file"):
        files.as_path(path)


def test_names_that_no_file_can_have_are_refused_in_a_sentence():
    for name in ("a\0b", "\ud800"):
        for read in (files.read_bytes, lambda path: tally(path, [], [])):
            with pytest.raises(InvalidInputError, match="no name of a file"):
                read(name)


def test_half_a_pair_of_surrogates_is_written_and_read_back(tmp_path):
    text = files.dump("example", 1, {"file": "\udcff é"})
    assert text.isascii()
    assert files.load(text, "example", (1,))["file"] == "\udcff é"
    files.write(tmp_path / "told", "\udcff é")
    assert (tmp_path / "told").read_text(encoding="utf-8") == "? é"
