"""A page is one file that fetches nothing and can be read by everyone."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from quiltwork.report import figure, page, paragraph, section, table

VOID = {"meta", "img", "br", "link", "input"}


class Outline(HTMLParser):
    """Collects what a reader's browser would see, and checks that tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.addresses: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.addresses += [found[name] for name in ("src", "href") if name in found]
        if "id" in found:
            self.ids.add(found["id"])
        if tag in ("h1", "h2"):
            self.headings.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def outline(text: str) -> Outline:
    parser = Outline()
    parser.feed(text)
    assert parser.open == []
    return parser


def test_a_page_is_self_contained_and_well_formed(chart, nasty):
    text = page(
        nasty,
        nasty,
        [
            section("First", paragraph("x"), figure(chart), anchor="first"),
            section("Second", table("t", ["a"], [[1]]), anchor="second"),
        ],
        nasty,
    )
    seen = outline(text)
    assert seen.headings == ["h1", "h2", "h2"]
    assert seen.addresses == ["#first", "#second"]
    assert {"first", "second"} <= seen.ids
    assert not re.search(r"@import|url\(|<script|https?://(?!www\.w3\.org/2000/svg)", text)
    assert '<html lang="en">' in text
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text


def test_a_page_with_one_section_has_no_contents():
    assert "<nav" not in page("t", "l", [section("Only", anchor="only")])


def test_text_is_readable_in_light_and_dark():
    """WCAG contrast of at least 4.5 for ink, muted text and links on paper and panels."""
    from quiltwork.report.style import DARK, LIGHT

    for theme in (LIGHT, DARK):
        colours = dict(re.findall(r"--(\w+):(#\w{6})", theme))
        for text in ("ink", "muted", "c1"):
            for ground in ("paper", "panel"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def contrast(first: str, second: str) -> float:
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
