"""Pictures show what the record says."""

import subprocess
import sys

import numpy as np
import pytest

from quiltwork import UnsupportedError, queries


def test_bars_span_the_intervals(make_release):
    release = make_release(noisy=(30, -2, 9))
    axes = release.plot(confidence=0.9)
    *bars, values = (line.get_xdata() for line in axes.lines)
    assert np.array_equal(bars, np.column_stack(release.interval(0.9)))
    assert values.tolist() == [30, -2, 9]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    assert "90 % intervals" in axes.get_title(loc="left")


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": queries.count("$x$"), "noisy": (3,)},
        {"query": queries.transitions(), "noisy": (1, 2, 3, 4), "states": ("a", "b")},
        {"query": queries.custom(len, lipschitz=1), "noisy": (3,)},
        {"noisy": tuple(range(60)), "states": tuple(range(60))},
        {"query": queries.frequencies()},
    ],
)
def test_every_numeric_release_can_be_drawn(arguments, make_release, tmp_path):
    figure = make_release(**arguments).plot().figure
    figure.savefig(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 1000


def test_a_label_cannot_be_drawn(make_release):
    with pytest.raises(UnsupportedError, match="label"):
        make_release(queries.most_common(), noisy=(1,), states=("a", "b")).plot()


def test_without_matplotlib_the_extra_is_named():
    code = """
import sys
sys.modules["matplotlib"] = None
sys.modules["matplotlib.figure"] = None
import quiltwork as qw
release = qw.release([0, 1], qw.queries.histogram(states=[0, 1]), qw.Clusters([1, 2]))
try:
    release.plot()
except qw.UnsupportedError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "quiltwork[plot]" in done.stdout
