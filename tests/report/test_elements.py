from __future__ import annotations

import pytest

from quiltwork.report import (
    Html,
    bullets,
    code,
    facts,
    folded,
    link,
    note,
    paragraph,
    section,
    table,
)


@pytest.mark.parametrize(
    "build",
    [
        paragraph,
        code,
        lambda text: bullets([text]),
        lambda text: link(text, text),
        lambda text: note(text, text),
        lambda text: folded(text, paragraph(text)),
        lambda text: facts({text: text}),
        lambda text: table(text, [text], [[text]]),
        lambda text: section(text, anchor=text),
    ],
)
def test_text_is_escaped_everywhere(build, nasty):
    markup = build(nasty).text
    assert "<script" not in markup
    assert "&lt;script&gt;" in markup


def test_markup_is_kept():
    assert paragraph(Html("<b>x</b>")).text == "<p><b>x</b></p>"


def test_columns_of_numbers_are_set_right_and_headers_are_scoped():
    markup = table("Caption", ["name", "value"], [["a", 0.123456789], ["b", 2]]).text
    assert "<caption>Caption</caption>" in markup
    assert '<th scope="col">name</th><th scope="col" class="number">value</th>' in markup
    assert '<td class="number">0.123457</td>' in markup
    assert "<td>a</td>" in markup
