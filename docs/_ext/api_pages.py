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
"""Base classes whose members are described once and not repeated for every subclass."""
SECTIONS = ("Args", "Returns", "Raises", "Yields", "Attributes", "Note", "Example", "Examples")


def markdown(docstring: str) -> list[str]:
    """Return a docstring as lines of Markdown."""
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
    """Yield the entries of a section as a Markdown list; indented lines continue an entry."""
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
    """Return the signature with its types; `...` stands for defaults that are not literals."""
    try:
        source = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    parameters = [
        parameter.replace(
            annotation=annotated(parameter.annotation), default=literal(parameter.default)
        )
        for parameter in source.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    returned = source.empty if inspect.isclass(value) else annotated(source.return_annotation)
    return str(inspect.Signature(parameters, return_annotation=returned))


class Verbatim:
    """A value whose `repr` is a given text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def literal(default: object) -> object:
    if default is inspect.Parameter.empty:
        return default
    return Verbatim("..." if repr(default).startswith("<") else repr(default))


def annotated(annotation: object) -> object:
    """Return a type annotation as it is written in the source."""
    if annotation is inspect.Parameter.empty:
        return annotation
    if isinstance(annotation, str):
        return Verbatim(annotation)
    return Verbatim(inspect.formatannotation(annotation).replace("quiltwork.", ""))


def returned_type(value: object) -> str:
    """Return the type of a property as it is written in the source."""
    getter = getattr(value, "fget", None) or getattr(value, "func", None)
    annotation = annotated(
        getattr(getter, "__annotations__", {}).get("return", inspect.Parameter.empty)
    )
    return repr(annotation) if isinstance(annotation, Verbatim) else ""


def public_members(value: type | ModuleType) -> dict[str, object]:
    """Return the public members of a class or module in the order of the source."""
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
    """Return the Markdown of a name and, for a class, of its public members."""
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
    """Return the object with a dotted name such as `quiltwork.queries`."""
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

    Names that do not exist are left out; tests/test_docs_site.py fails for them.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        sections: list[nodes.Node] = []
        for path in filter(None, map(str.strip, self.content)):
            try:
                value = resolve(path)
            except (AttributeError, ImportError) as missing:
                logger.info("%s is not described: %s", path, missing)
                continue
            if isinstance(value, ModuleType):
                sections += self.parse_text_to_nodes("\n".join(markdown(value.__doc__ or "")))
                members = public_members(value).items()
                for name, member in sorted(members, key=lambda item: inspect.isclass(item[1])):
                    sections.append(self.section(f"{path}.{name}", member))
            else:
                sections.append(self.section(path, value))
        return sections

    def section(self, path: str, value: object) -> nodes.section:
        name = path.rpartition(".")[2]
        section = nodes.section(ids=[f"api-{nodes.make_id(path)}"], names=[path])
        section += nodes.title(name, "", nodes.literal("", name))
        section += self.parse_text_to_nodes("\n".join(describe(path, value)))
        return section


def commands(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below a group, subgroups included."""
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
        from quiltwork.cli.root_command import app

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
