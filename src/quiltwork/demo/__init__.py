"""The demonstration: every system on data the project makes up itself, ending with one page.

A chapter is one function that returns a `Chapter`; `CHAPTERS` lists them in order. A new chapter
is a module here and one line in that table.
"""

from quiltwork.demo.tour import CHAPTERS, Chapter, chapters, report

__all__ = ["CHAPTERS", "Chapter", "chapters", "report"]


def __dir__() -> list[str]:
    return sorted(__all__)
