"""Reference pages from the code itself: the directives `api` and `commands`.

Docstrings are Markdown, as they are written; `>>>` paragraphs become code, sections such as
"Raises:" become lists, and "Theorem: docs/theory/page.md" becomes a link.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from textwrap import dedent
from types import ModuleType
from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.logging import getLogger

logger = getLogger(__name__)
SHARED = {
    "Query": "all that `Query` has",
    "Belief": "all that `Belief` has",
    "Constraint": "all that `Constraint` has",
    "ResultBase": "[what every result has](/reference/results.md)",
}
"""Classes whose members are described once, and not again with every class made from them."""
SECTIONS = ("Args", "Returns", "Raises", "Yields", "Attributes", "Note", "Example", "Examples")


def markdown(docstring: str) -> list[str]:
    """A docstring as Markdown lines."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(docstring)):
        first, _, rest = paragraph.partition("\n")
        if first.lstrip().startswith(">>>"):
            lines += ["```pycon", *inspect.cleandoc(paragraph).splitlines(), "```"]
        elif first.rstrip(":") in SECTIONS and first.endswith(":"):
            lines += [f"**{first[:-1]}**", "", *entries(rest)]
        else:
            lines += [theorem_link(line) for line in paragraph.splitlines()]
        lines.append("")
    return lines


def entries(text: str) -> Iterator[str]:
    """The entries of a section as a list; a deeper line goes on with the entry before it."""
    for line in dedent(text).splitlines():
        name, colon, meaning = line.partition(":")
        if line.startswith(" "):
            yield f"  {line.strip()}"
        elif colon and re.fullmatch(r"[*\w., ()]+", name):
            yield f"- `{name}`:{meaning}"
        else:
            yield f"- {line}"


def theorem_link(line: str) -> str:
    if not line.lstrip().startswith("Theorem: "):
        return line
    return re.sub(r"docs/theory/([\w-]+)\.md", linked, line)


def linked(page: re.Match[str]) -> str:
    return f"[{page[1].replace('-', ' ')}](/theory/{page[1]}.md)"


def signature(value: object) -> str:
    """The signature with its types; defaults that cannot be read back are left out."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    kept = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    shown = [
        p.replace(annotation=annotated(p.annotation), default=literal(p.default)) for p in kept
    ]
    returned = found.empty if inspect.isclass(value) else annotated(found.return_annotation)
    return str(inspect.Signature(shown, return_annotation=returned))


class Verbatim:
    """Shows itself as a given text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def literal(default: object) -> object:
    if default is inspect.Parameter.empty:
        return default
    return Verbatim("..." if repr(default).startswith("<") else repr(default))


def annotated(annotation: object) -> object:
    """A type as it is written in the source."""
    if annotation is inspect.Parameter.empty:
        return annotation
    if isinstance(annotation, str):
        return Verbatim(annotation)
    return Verbatim(inspect.formatannotation(annotation).replace("quiltwork.", ""))


def returned_type(value: object) -> str:
    """What a property gives, as it is written in the source."""
    getter = getattr(value, "fget", None) or getattr(value, "func", None)
    found = annotated(getattr(getter, "__annotations__", {}).get("return", inspect.Parameter.empty))
    return repr(found) if isinstance(found, Verbatim) else ""


def public_members(value: type | ModuleType) -> dict[str, object]:
    """What a class or module offers, in the order it is written."""
    if isinstance(value, ModuleType):
        names = getattr(value, "__all__", None) or [
            name
            for name, member in vars(value).items()
            if getattr(member, "__module__", "").startswith(value.__name__)
        ]
        return {n: getattr(value, n) for n in names if not n.startswith("_")}
    return {
        name: inspect.getattr_static(value, name)
        for cls in reversed(value.__mro__)
        if cls.__module__.startswith("quiltwork") and (cls is value or not described(cls))
        for name, member in vars(cls).items()
        if not name.startswith("_") and documented_member(member)
    }


def described(base: type) -> bool:
    return base.__name__ in SHARED or issubclass(base, resolve("quiltwork.queries.Query"))


def inherited(value: type) -> list[str]:
    names = [base.__name__ for base in value.__mro__[1:] if base.__name__ in SHARED]
    return [f"Has {SHARED[name]}.\n" for name in names]


def documented_member(member: object) -> bool:
    is_method = inspect.isfunction(member) or isinstance(
        member, property | classmethod | staticmethod
    )
    return bool(is_method or hasattr(member, "func")) and bool(inspect.getdoc(member))


def describe(path: str, value: object, depth: int = 0) -> list[str]:
    """The Markdown of one name and, for a class, of what it offers."""
    fence = ":" * (8 - depth)
    if inspect.isclass(value):
        is_error = issubclass(value, Exception)
        kind, arguments = ("exception", "") if is_error else ("class", signature(value))
    elif isinstance(value, property) or hasattr(value, "func"):
        kind, arguments = ("property" if depth else "attribute"), ""
    elif depth:
        kind, arguments = "method", signature(getattr(value, "__func__", value))
    elif callable(value):
        kind, arguments = "function", signature(value)
    else:
        kind, arguments = "data", ""
    lines = [f"{fence}{{py:{kind}}} {path}{arguments}"]
    if isinstance(value, classmethod | staticmethod):
        lines += [f":{type(value).__name__}:"]
    if kind in ("property", "attribute") and (gives := returned_type(value)):
        lines += [f":type: {gives}"]
    lines += ["", *markdown(docstring(value))]
    if inspect.isclass(value) and kind == "class":
        lines += inherited(value)
        for name, member in public_members(value).items():
            lines += describe(f"{path}.{name}", member, depth + 1)
    return [*lines, fence, ""]


def docstring(value: object) -> str:
    own = inspect.getdoc(getattr(value, "__func__", value)) or ""
    return "" if own.startswith(f"{getattr(value, '__name__', '')}(") else own


def resolve(path: str) -> object:
    """The object behind a dotted name such as `quiltwork.queries`."""
    parts = path.split(".")
    value: Any = importlib.import_module(parts[0])
    for depth, part in enumerate(parts[1:], start=2):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join(parts[:depth]))
    return value


class Api(SphinxDirective):
    """`api`: one dotted name per line, each with a heading.

    A name that does not exist yet is left out; tests/test_docs_site.py insists that all do.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        for path in filter(None, map(str.strip, self.content)):
            try:
                value = resolve(path)
            except (AttributeError, ImportError) as missing:
                logger.info("%s is not described: %s", path, missing)
                continue
            if isinstance(value, ModuleType):
                made += self.parse_text_to_nodes("\n".join(markdown(value.__doc__ or "")))
                members = public_members(value).items()
                for name, member in sorted(members, key=lambda one: inspect.isclass(one[1])):
                    made.append(self.section(f"{path}.{name}", member))
            else:
                made.append(self.section(path, value))
        return made

    def section(self, path: str, value: object) -> nodes.section:
        name = path.rpartition(".")[2]
        section = nodes.section(ids=[f"api-{nodes.make_id(path)}"], names=[path])
        section += nodes.title(name, "", nodes.literal("", name))
        section += self.parse_text_to_nodes("\n".join(describe(path, value)))
        return section


def commands(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below a group, groups included."""
    context = click.Context(group, info_name=prefix)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield f"{prefix} {name}", command
            if isinstance(command, click.Group):
                yield from commands(command, f"{prefix} {name}")


class Commands(SphinxDirective):
    """`commands`: the help of every command of the command line."""

    def run(self) -> list[nodes.Node]:
        from quiltwork.cli.program import app

        lines: list[str] = []
        for path, command in [("quiltwork", app), *commands(app, "quiltwork")]:
            context = click.Context(
                command, info_name=path, terminal_width=90, max_content_width=90
            )
            lines += [
                f"**{path}**",
                "",
                "```text",
                *command.get_help(context).splitlines(),
                "```",
                "",
            ]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("api", Api)
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
