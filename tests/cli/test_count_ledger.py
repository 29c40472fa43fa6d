"""`quiltwork count` pays from a ledger: before drawing, once per key, and not beyond the budget."""

from __future__ import annotations

from fractions import Fraction

import pytest

import quiltwork as qw


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("sex,age\n" + "f,70\nm,30\n" * 50, encoding="utf-8")
    return str(path)


@pytest.fixture
def url(tmp_path):
    address = f"sqlite:///{tmp_path / 'budget.db'}"
    qw.Ledger.open(address).create("survey", qw.Clusters(range(100)), None, 2)
    return address


def asked(people, url, *more, key="may"):
    return (
        *("count", people, "--by", "sex", "--categories", "f,m", "--epsilon", "0.5", *more),
        *("--ledger", url, "--dataset", "survey", "--key", key, "--json"),
    )


def test_a_table_is_paid_for_replaced_rows_and_its_key_repeats_it(cli, people, url):
    first, second = cli(*asked(people, url)), cli(*asked(people, url))
    assert first.code == 0, first.err
    assert first.out == second.out
    (debit,) = qw.Ledger.open(url).history("survey")
    assert debit.spending.per_point == 2 * Fraction("0.5")


def test_a_key_of_another_question_is_refused(cli, people, url):
    assert cli(*asked(people, url)).code == 0
    other = cli(*asked(people, url, "--where", "age>=65"))
    assert other.code == 2
    assert "key" in other.err
    assert len(qw.Ledger.open(url).history("survey")) == 1


def test_beyond_the_budget_nothing_is_drawn_or_recorded(cli, people, url):
    assert [cli(*asked(people, url, key=key)).code for key in "abc"] == [0, 0, 1]
    refused = cli(*asked(people, url, key="c"))
    assert refused.out == ""
    assert len(qw.Ledger.open(url).history("survey")) == 2


def test_a_number_is_paid_too(cli, url):
    number = ("count", "--value", "42", "--n", "100", "--epsilon", "1", "--json")
    paid = (*number, "--ledger", url, "--dataset", "survey", "--key", "k")
    assert cli(*paid).document["value"] == cli(*paid).document["value"]
    assert [d.spending.per_point for d in qw.Ledger.open(url).history("survey")] == [1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dataset", "survey"], "go with --ledger"),
        (["--key", "k"], "go with --ledger"),
        (["--analyst", "ana"], "go with --ledger"),
        (["--ledger", "URL"], "--dataset"),
        (["--ledger", "URL", "--dataset", "nobody"], "nobody"),
    ],
)
def test_ledger_options_that_do_not_fit_are_refused(cli, people, url, options, words):
    given = [url if option == "URL" else option for option in options]
    ran = cli("count", people, "--epsilon", "1", *given)
    assert ran.code == 2
    assert ran.out == ""
    assert words in ran.err


@pytest.mark.parametrize(
    "question",
    [
        ("--value", "42", "--n", "100", "--epsilon", "1"),
        ("--value", "420", "--n", "100", "--epsilon", "1"),
        ("PEOPLE", "--by", "sex", "--categories", "f,m", "--epsilon", "1"),
        ("PEOPLE", "--by", "town", "--categories", "f,m", "--epsilon", "1"),
    ],
)
def test_a_count_never_makes_a_ledger(cli, people, tmp_path, question):
    asked = [people if word == "PEOPLE" else word for word in question]
    new = f"sqlite:///{tmp_path / 'new.db'}"
    refused = cli("count", *asked, "--ledger", new, "--dataset", "survey")
    assert (refused.code != 0, refused.out) == (True, "")
    assert not (tmp_path / "new.db").exists()
