"""The page of errors has every class, and only sentences that the product says."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from quiltwork import errors
from quiltwork.wording import argument

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")


def said() -> str:
    """The source, with texts that go on in the next line put together."""
    files = (ROOT / "src").rglob("*.py")
    joined = (re.sub(r'"\s+f?"', "", path.read_text(encoding="utf-8")) for path in files)
    return "\n".join(re.sub(r"\{argument\(([^{}]*)\)\}", in_python, text) for text in joined)


def in_python(named: re.Match[str]) -> str:
    """An argument in a sentence, as it is said in Python; a value that is computed is left out."""
    try:
        return argument(*ast.literal_eval(f"({named[1]},)"))
    except ValueError:
        return f"{named[1].split(',')[0].strip(chr(39))}={{…}}"


def quoted() -> list[str]:
    """The sentences of the page: a line of code with its remedy below."""
    return re.findall(r"^`([^`]+)`\n: ", PAGE, flags=re.M)


def test_every_class_is_explained_with_its_exit_code():
    for name, value in inspect.getmembers(errors, inspect.isclass):
        if value.__module__ == errors.__name__:
            assert f"quiltwork.{name}" in PAGE
            code = getattr(value, "exit_code", 0)
            told = re.search(rf"^\| `{name}` \|[^|]*\| (\d) \|", PAGE, flags=re.M)
            assert (told is not None and int(told[1]) == code) or name == "QuiltworkError"


def test_every_sentence_of_the_page_is_one_of_the_product():
    source = said()
    assert len(quoted()) > 25
    for sentence in quoted():
        for part in sentence.split("…"):
            assert part.strip() in source, f"nothing in the source says {part.strip()!r}"
    assert "this is said nowhere in the product" not in source
