"""The demo: each of the four systems on simulated data, and one HTML report.

A chapter is a function that returns a `Chapter`; `CHAPTERS` lists them in order. A new chapter is a
module here and a line in that list.
"""

from quiltwork.demo.tour import CHAPTERS, Chapter, chapters, report

__all__ = ["CHAPTERS", "Chapter", "chapters", "report"]


def __dir__() -> list[str]:
    return sorted(__all__)
