"""The rooms of docs/architecture.md: imports point downwards, and no circles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "quiltwork"
FACADE = "quiltwork"  # the package itself: it names every room, so only interfaces may use it
ROOMLESS = {"__init__", "__main__", "_lazy_exports", "_version"}


def layers() -> list[list[str]]:
    """The rooms of each layer, topmost first, as the table of the architecture page gives them."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| *(\w+) *\| *(`.+?) *\|", text, flags=re.MULTILINE)
    return [re.findall(r"`(\w+)`", rooms) for _, rooms in rows]


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported_modules(path: Path) -> Iterator[str]:
    """Every module of the package that a file imports, also inside functions and for types."""
    package = ["quiltwork", *path.relative_to(PACKAGE).parent.parts]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == FACADE:
                yield from (f"{FACADE}.{alias.name}" for alias in node.names)
            else:
                yield module


def rooms_entered(path: Path) -> set[str]:
    rooms = set()
    for module in imported_modules(path):
        top, _, rest = module.partition(".")
        if top == FACADE:
            name = rest.split(".")[0]
            is_room = (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()
            rooms.add(name if name and is_room else FACADE)
    return rooms - ROOMLESS - {room_of(path)}


def sources() -> list[Path]:
    return [p for p in sorted(PACKAGE.rglob("*.py")) if room_of(p) not in ROOMLESS]


LAYER = {room: depth for depth, rooms in enumerate(layers()) for room in rooms}


def test_the_architecture_page_lists_four_layers():
    assert [rooms[0] for rooms in layers()] == ["cli", "series", "audit", "errors"]


def check_imports(paths: list[Path]) -> None:
    for path in paths:
        room = room_of(path)
        assert room in LAYER, f"name the room {room!r} in the table of docs/architecture.md"
        for entered in rooms_entered(path):
            if entered == FACADE:
                assert LAYER[room] == 0, f"{path} uses the facade; import from the room instead"
            else:
                assert entered in LAYER, f"name the room {entered!r} in docs/architecture.md"
                assert LAYER[entered] >= LAYER[room], f"{path} imports {entered}: it is above"


def test_imports_point_downwards():
    check_imports(sources())


def test_no_two_rooms_need_each_other():
    edges: dict[str, set[str]] = {}
    for path in sources():
        edges.setdefault(room_of(path), set()).update(rooms_entered(path) - {FACADE})
    finished: set[str] = set()

    def visit(room: str, trail: tuple[str, ...]) -> None:
        assert room not in trail, f"a circle of imports: {' → '.join((*trail, room))}"
        if room not in finished:
            for entered in sorted(edges.get(room, ())):
                visit(entered, (*trail, room))
            finished.add(room)

    for room in sorted(edges):
        visit(room, ())


def test_a_circle_and_an_upward_import_would_be_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    for name, text in {
        "errors.py": "",
        "noise/grid.py": "def f():\n    from quiltwork.series import intervals\n",
        "series/__init__.py": "from ..noise.grid import f\nimport quiltwork\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(AssertionError, match="it is above"):
        check_imports([tmp_path / "noise/grid.py"])
    with pytest.raises(AssertionError, match="facade"):
        check_imports([tmp_path / "series/__init__.py"])
    with pytest.raises(AssertionError, match="circle"):
        test_no_two_rooms_need_each_other()


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join([FACADE, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def module_edges(paths: list[Path]) -> dict[str, set[str]]:
    """Which module needs which, imports inside functions and for types counted."""
    modules = {module_name(path) for path in paths}
    edges: dict[str, set[str]] = {module: set() for module in modules}
    for path in paths:
        package = [FACADE, *path.relative_to(PACKAGE).parent.parts]
        for node in nodes(path):
            if isinstance(node, ast.Import):
                imported = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                source = ".".join([*base, *([node.module] if node.module else [])])
                imported = {f"{source}.{alias.name}" for alias in node.names}
                imported = {name if name in modules else source for name in imported}
            else:
                continue
            edges[module_name(path)] |= imported & modules - {module_name(path)}
    return edges


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules of which each needs all others, directly or by way of others."""
    import networkx as nx

    graph = nx.DiGraph([(a, b) for a, bs in edges.items() for b in bs])
    return sorted(
        sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1
    )


def test_no_modules_need_each_other():
    remaining = circles(module_edges(sources()))
    assert not remaining, f"circles of imports between modules: {remaining}"


def test_a_circle_of_modules_would_be_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    for name, text in {
        "a/__init__.py": "",
        "a/x.py": "def f():\n    from quiltwork.a import y\n",
        "a/y.py": "from .z import g\n",
        "a/z.py": "from .x import f\n",
        "a/w.py": "from quiltwork.a.x import f\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = circles(module_edges(sorted(tmp_path.rglob("*.py"))))
    assert found == [["quiltwork.a.x", "quiltwork.a.y", "quiltwork.a.z"]]


def shared_class_names(paths: list[Path]) -> dict[str, list[str]]:
    """Names of several classes."""
    places: dict[str, list[str]] = {}
    for path in paths:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    return {name: found for name, found in places.items() if len(found) > 1}


def test_a_class_name_has_one_meaning():
    shared = shared_class_names(sources())
    assert not shared, f"give each of them a name that says what it is: {shared}"


def test_a_shared_class_name_would_be_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    for name, text in {
        "counts/a.py": "class Plan:\n    noise: int\n",
        "service/b.py": "class Plan:\n    noise: int\nclass Job:\n    id: int\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert set(shared_class_names(sorted(tmp_path.rglob("*.py")))) == {"Plan"}


def shared_file_names(paths: list[Path]) -> dict[str, list[str]]:
    """Names of several modules, other than those that Python gives."""
    places: dict[str, list[str]] = {}
    for path in paths:
        if path.name not in {"__init__.py", "__main__.py"}:
            places.setdefault(path.name, []).append(str(path.relative_to(PACKAGE)))
    return {name: modules for name, modules in places.items() if len(modules) > 1}


def test_a_module_name_has_one_meaning():
    shared = shared_file_names(sorted(PACKAGE.rglob("*.py")))
    assert not shared, f"give each of them a name that says what it is: {shared}"


def test_a_shared_file_name_would_be_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    for name in ("a/__init__.py", "a/tables.py", "b/__init__.py", "b/tables.py", "b/rows.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert set(shared_file_names(sorted(tmp_path.rglob("*.py")))) == {"tables.py"}


def test_no_loose_ends_in_the_source():
    for path in sources():
        loose = re.findall(r"#.*\b(?:TODO|FIXME|XXX)\b", path.read_text(encoding="utf-8"))
        assert not loose, f"{path.relative_to(ROOT)}: {loose}"


def last_name(node: ast.AST) -> str:
    """`c` of `a.b.c`; nothing for what has no name."""
    return getattr(node, "attr", getattr(node, "id", ""))


def pseudorandom_uses(found: list[ast.AST]) -> Iterator[str]:
    """Every use of a pseudorandom generator other than NumPy's with an explicit seed."""
    for node in found:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            yield from names & {"random", "numpy.random"}
        elif isinstance(node, ast.Call) and last_name(node.func).endswith("default_rng"):
            if not node.args or ast.unparse(node.args[0]) == "None":
                yield ast.unparse(node)
        elif isinstance(node, ast.Attribute) and last_name(node.value) == "random":
            yield from re.findall(r"^np\.random\.(?!default_rng|Generator)\w+$", ast.unparse(node))


def test_pseudorandom_numbers_need_a_seed_and_stay_out_of_the_noise():
    for path in sources():
        found = list(pseudorandom_uses(nodes(path)))
        assert not found, f"{path.relative_to(ROOT)}: {found}"
        assert room_of(path) != "noise" or "default_rng" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "code",
    [
        "import random",
        "from numpy.random import laplace",
        "np.random.laplace(0)",
        "np.random.default_rng()",
    ],
)
def test_a_careless_generator_would_be_seen(code):
    assert list(pseudorandom_uses(list(ast.walk(ast.parse(code)))))


def clocks_read(text: str) -> list[str]:
    """Every clock that a test could compare with, but one that it makes: a machine may be busy."""
    return re.findall(
        r"perf_counter(?!=)|process_time|time\.monotonic|getrusage|timeit|time\.time\b", text
    )


def test_no_test_reads_a_clock():
    exempt = {"test_architecture.py", "test_bench_harness.py"}  # the latter makes its own clock
    for path in (ROOT / "tests").rglob("*.py"):
        found = [] if path.name in exempt else clocks_read(path.read_text(encoding="utf-8"))
        assert not found, (
            f"{path.relative_to(ROOT)} measures time, which `make bench` does: {found}"
        )


def test_a_timed_assertion_would_be_seen():
    assert clocks_read("assert time.monotonic() - start < 10")
    assert clocks_read("clock = time.perf_counter")
    assert not clocks_read("SimpleNamespace(perf_counter=lambda: 1.0)")


def test_every_test_that_is_left_out_of_the_quick_ones_exists():
    there = {
        f"{path.name}::{name}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text("utf-8"), re.M)
    }
    lines = (ROOT / "tests" / "slow_tests.txt").read_text(encoding="utf-8").splitlines()
    gone = {re.sub(r"::\w+::", "::", one) for one in lines if one.startswith("test_")} - there
    assert not gone, f"moved, renamed or removed; mend tests/slow_tests.txt: {sorted(gone)}"


def test_no_room_imports_what_only_the_papers_need():
    """No feature of a user may come to stand on it; `quiltwork reproduce` finds it by its path."""
    for path in sources():
        names = [
            alias.name if isinstance(node, ast.Import) else str(node.module)
            for node in nodes(path)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        ]
        assert not [name for name in names if name.split(".")[0] == "papers"], path


WAY_OF_A_ROW = (
    "input",
    "codes",
    "table",
    "generalization",
    "constraints",
    "verification",
    "partitioning",
    "publishing",
    "metrics",
    "risk",
    "publication",
    "spark",
    "m_privacy",
    "anonymization",
    "providers",
)
"""The folders and modules of `tables` in the order in which a row passes through them."""


def steps_back(edges: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Imports of a step of the way from a later one."""
    step = {name: number for number, name in enumerate(WAY_OF_A_ROW)}

    def step_of(module: str) -> int | None:
        _, room, part, *_ = *module.split("."), ""
        return step.get(part) if room == "tables" else None

    found = []
    for module, imported in edges.items():
        here = step_of(module)
        for other in imported:
            there = step_of(other)
            if here is not None and there is not None and there > here:
                found.append((module, other))
    return sorted(found)


def test_tables_show_the_way_a_row_takes():
    tables = [path for path in sources() if room_of(path) == "tables"]
    edges = module_edges(tables)
    assert not steps_back(edges)
    folders = {path.relative_to(PACKAGE / "tables").parts[0] for path in tables}
    named = {name.removesuffix(".py") for name in folders}
    assert set(WAY_OF_A_ROW) <= named
    assert {name for name in folders if not name.endswith(".py")} <= set(WAY_OF_A_ROW)


def test_a_step_back_would_be_seen():
    assert steps_back({"quiltwork.tables.input.x": {"quiltwork.tables.risk.y"}})
    assert not steps_back({"quiltwork.tables.risk.y": {"quiltwork.tables.input.x"}})
