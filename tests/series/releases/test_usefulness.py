"""Verdicts before and after paying: by public quantities, and by what was released alone."""

import pandas
import pytest

import quiltwork as qw
from quiltwork import queries
from quiltwork.errors import QuiltworkWarning

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])


@pytest.mark.parametrize(
    ("length", "verdict"), [(20, "rough"), (12, "useless"), (140, "useful"), (130, "rough")]
)
def test_a_preview_judges_the_error_by_an_even_share_of_the_total(length, verdict):
    """The error is 6.65 for any length: a tenth of length/2 is passed between 130 and 140."""
    seen = qw.preview(queries.histogram(), CHAIN, length=length)
    if length > 20:
        assert seen.expected_error == pytest.approx(6.648, abs=0.01)
    assert seen.signal == length / 2
    assert seen.usefulness.verdict == verdict


def test_it_says_how_much_longer_a_useful_series_is():
    seen = qw.preview(queries.histogram(), CHAIN, length=60)
    (needed,) = (line for line in seen.advice if "would make it useful" in line)
    points = int(needed.split()[1].replace(",", ""))
    assert qw.preview(queries.histogram(), CHAIN, length=points).usefulness.verdict == "useful"
    assert qw.preview(queries.histogram(), CHAIN, length=points - 2).usefulness.verdict == "rough"


def test_it_names_the_states_whose_ties_take_the_noise():
    (tied, *_) = qw.preview(queries.histogram(), CHAIN, length=100).advice
    assert tied.startswith("70 % of ε")
    assert "about whether it is rest or walk" in tied
    loose = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    assert qw.preview(queries.histogram(), loose, length=1000).advice == ()


def test_gaps_that_are_a_state_can_be_public():
    gaps = qw.MarkovChain([[0.98, 0.02], [0.02, 0.98]], states=["on", "missing"])
    assert any("missing='public'" in line for line in qw.preview(HIST, gaps, length=100).advice)
    assert not any("public" in line for line in qw.preview(HIST, CHAIN, length=100).advice)


HIST = queries.histogram()


def test_persons_are_told_how_many_of_them_it_takes():
    seen = qw.preview(HIST, CHAIN, length=10, subjects=5, protect="person")
    (needed,) = seen.advice
    persons = int(needed.split()[1].replace(",", ""))
    for number, verdict in ((persons, "useful"), (persons - 1, "rough")):
        enough = qw.preview(HIST, CHAIN, length=10, subjects=number, protect="person")
        assert enough.usefulness.verdict == verdict


def test_series_of_different_lengths_are_judged_by_the_points_they_have():
    """As many of the longest would promise more than there is: 91 pieces of a few long series."""
    lengths = [140, *[5] * 90]
    seen = qw.preview(HIST, CHAIN, length=lengths)
    cells = len(HIST.cells(CHAIN.states))
    assert seen.signal == pytest.approx(sum(lengths) / cells)
    assert seen.scale == qw.preview(HIST, CHAIN, length=140).scale


def test_a_release_is_judged_by_what_was_released(make_release):
    strong = make_release(noisy=(1000, 3, -2))
    assert strong.usefulness.verdict == "useful"
    assert (
        "2 of 3 cells cannot be distinguished from 0: their 95 % intervals, valid"
        in strong.usefulness.reason
    )
    assert make_release(noisy=(15, 3, -2)).usefulness.verdict == "rough"
    assert make_release(noisy=(10, 3, -2)).usefulness.verdict == "useless"  # of three, by chance
    assert make_release(noisy=(1, 0, -2)).usefulness.verdict == "useless"
    below = make_release(noisy=(-900, 0, 5)).usefulness  # a count is never below 0
    assert below.verdict == "useless"
    assert "3 of 3" in below.reason
    assert str(strong.usefulness) in strong.explain()


def test_a_page_and_a_notebook_show_numbers_picture_and_verdict(make_release, tmp_path):
    release = make_release(noisy=(1000, 33, -2))
    release.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    low, high = (end[0] for end in release.interval())
    for part in ("<svg", "Useful.", "ε = 0.1", "every time point", "1,000", f"{low}", f"{high:,}"):
        assert part in page
    assert "1000" not in page  # one way of writing numbers
    assert "1 sequences" not in page
    assert "<svg" in release._repr_html_()
    assert "Released" in release._repr_html_()
    assert "<svg" in qw.counts.release_table({"f": 9}, epsilon=1)._repr_html_()
    assert release.plot()._repr_png_().startswith(b"\x89PNG")


def test_hours_are_one_sentence_and_the_page_names_the_period(tmp_path):
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    times = pandas.date_range("2026-03-01", periods=48, freq="h")
    day = pandas.Series(["rest", "walk"] * 24, index=times)
    release = qw.release(day, qw.queries.by_hour(), chain, epsilon=1.0)
    lines = release.explain().splitlines()
    assert lines[0].startswith("Released: by hour")
    assert lines[1].startswith("Noise: ")
    release.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "1 March 2026 to 2 March 2026" in page
    assert "<li>[" not in page


def test_a_level_that_nobody_means_is_warned_about_for_persons_too():
    with pytest.warns(QuiltworkWarning, match="protects nothing"):
        qw.release(
            ["a", "b"], qw.queries.histogram(states=["a", "b"]), None, 1000, protect="person"
        )
