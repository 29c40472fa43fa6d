"""The report on a publication: its figures are those of the measures, its page stands alone."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from quiltwork.exact import percent
from quiltwork.tables.anonymization import anonymize
from quiltwork.tables.constraints import KAnonymity, LDiversity
from quiltwork.tables.metrics.models import privacy_models
from quiltwork.tables.metrics.query_error import query_error
from quiltwork.tables.table import Table
from quiltwork.tables.verification import max_m


@pytest.fixture(scope="module")
def publication():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "hospital": rng.choice(["A", "B", "C"], 400),
            "age": rng.integers(20, 80, 400),
            "town <&>": rng.choice(["x", "y", "<z>"], 400),
            "ill": rng.choice(["flu", "cold", "gout"], 400),
        }
    )
    table = Table(frame, "hospital", ["age", "town <&>"], "ill")
    return anonymize(table, KAnonymity(6) & LDiversity(2), m=1)


def test_figures_are_those_of_the_measures(publication):
    report = publication.report()
    kept = report.assessment.utility
    assert kept.query_error == query_error(publication.source, publication, kept.queries)
    assert kept.queries == 2500
    assert report.assessment.models == privacy_models(publication.table)
    shown = Table(publication.frame, None, ["age", "town <&>"], "ill")
    assert report.assessment.models == privacy_models(shown)
    sizes = publication.frame.groupby(["age", "town <&>"]).size()
    assert kept.loss.discernibility == (sizes**2).sum()
    assert kept.loss.average_class_size == pytest.approx(sizes.mean())
    assert json.loads(json.dumps(report.body()))["loss"]["gcp"] == kept.loss.gcp


def test_the_page_stands_alone_and_escapes_names(publication, tmp_path):
    publication.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count('class="qw"') == 8  # guesses, sizes, confidence, penalty; each for phones too
    assert "town &lt;&amp;&gt;" in text
    assert "town <&>" not in text
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    for part in text.split("<svg")[1:]:
        ET.fromstring("<svg" + part[: part.index("</svg>")] + "</svg>")  # noqa: S314
    assert publication.report()._repr_html_() == text


def test_the_page_answers_what_providers_ask(publication):
    """How many may collude, who is next and what they leave, whose rows, groups of one provider."""
    report = publication.report()
    found = report.assessment.utility.providers
    given = publication.source.frame["hospital"].value_counts()
    inside = publication.table.frame.groupby(["age", "town <&>"])["hospital"].nunique()
    alone = int((inside == 1).sum())
    assert f"{percent(alone / len(inside))} ({alone} of {len(inside)})" in report.html
    for name, rows in given.items():
        assert f"<td>{name}</td>" in report.html
        assert found.rows[name] == found.published[name] == rows
    assert int(found.safe) == max_m(publication.table, KAnonymity(6) & LDiversity(2)) == 1
    assert found.withstood.split("(")[0] in report.html
    assert report.body()["for_providers"]["withstands"] == 1
    whole = Table(publication.source.frame, None, ["age", "town <&>"], "ill")
    assert "For the providers" not in anonymize(whole, KAnonymity(6), m=0).report().html


def test_certainty_penalty_is_the_width_of_published_ranges(publication):
    ages = publication.source.frame["age"]
    ends = publication.frame["age"].str.split("..", regex=False)
    width = ends.map(lambda e: float(e[-1]) - float(e[0])) / (ages.max() - ages.min())
    assert publication.report().assessment.utility.loss.ncp["age"] == pytest.approx(width.mean())
