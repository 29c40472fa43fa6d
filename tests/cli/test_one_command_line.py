"""The same option for the same thing everywhere, standard streams, typos, and plain words."""

import io
import json
import sys

import click
import pytest

import quiltwork as qw
from quiltwork.cli.root_command import app

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "belief.json").write_text(CHAIN.to_json())
    rows = [f"p{i},{t},{s}" for i in range(9) for t, s in enumerate(CHAIN.sample(50, seed=i))]
    (tmp_path / "walks.csv").write_text("\n".join(["who,minute,activity", *rows]))
    (tmp_path / "visits.csv").write_text("id,ward\n" + "1,a\n" * 9 + "2,a\n3,b\n")
    return tmp_path


WALKS = ("release", "walks.csv", "--value", "activity", "--subject", "who", "--time", "minute")


def commands(group=app, path=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
        else:
            yield " ".join((*path, name)), found


EVERY = dict(commands())


def options(command):
    return {text for one in command.params if isinstance(one, click.Option) for text in one.opts}


@pytest.mark.parametrize("name", EVERY)
def test_one_thing_has_one_option(name):
    known = options(EVERY[name])
    assert ("--output" in known) == ("-o" in known)
    assert not {"--html", "--order"} & known or name == "fit"
    assert name != "count" or {"--subject", "--max-rows"} <= known
    assert not any(
        one.name == "belief" for one in EVERY[name].params if isinstance(one, click.Argument)
    )


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_a_short_help_and_completes_files(name, cli):
    ran = cli(*name.split(), "-h")
    assert (ran.code, ran.err) == (0, "")
    assert "Example:" in ran.out
    for one in EVERY[name].params:
        if one.metavar == "FILE" and isinstance(one.type, click.types.StringParamType):
            (found,) = one.shell_complete(click.Context(EVERY[name]), "be")
            assert found.type == "file"


def test_every_group_has_a_short_help(cli):
    for name in {name.split()[0] for name in EVERY if " " in name}:
        assert cli(name, "-h").out == cli(name, "--help").out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["releas"], "'release'"),
        (["ledger", "crate"], "'create'"),
        ([*WALKS, "--belif"], "--belief"),
    ],
)
def test_typos_get_a_suggestion(cli, typed, meant):
    ran = cli(*typed)
    assert ran.code == 2
    assert meant in ran.err
    assert "?." not in ran.err


def test_beliefs_are_named_alike(cli):
    asked = ("--length", "40", "--epsilon", "1", "--method", "exact", "--json")
    assert cli("calibrate", "--belief", "belief.json", *asked).code == 0
    assert "--belief belief.json" in cli("calibrate", *asked).err


def test_a_belief_comes_from_standard_input_and_an_answer_goes_to_standard_output(cli, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(CHAIN.to_json().encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    ran = cli(*WALKS, "--belief", "-", "--epsilon", "1", "-o", "-")
    assert ran.code == 0, ran.err
    assert ran.document["schema"] == "quiltwork/release"
    assert all(type(end) is int for pair in ran.document["intervals"] for end in pair)


def test_a_table_comes_from_standard_input_and_goes_to_standard_output(cli, monkeypatch):
    people = [f"{who},0{place},{ill}\n" for who in "ab" for place in "12" for ill in "xyz"]
    about = ("--provider", "clinic", "--quasi", "zip", "--sensitive", "ill", "--k", "2", "--l", "2")
    for command in (("verify", "-"), ("anonymize", "-", "-o", "-")):
        rows = io.BytesIO("".join(["clinic,zip,ill\n", *people]).encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(rows))
        ran = cli(*command, *about)
        assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == 13
    assert "verified" in ran.err
    assert cli("anonymize", "-", "-o", "-", *about, "--json").code == 2


def test_errors_speak_of_options(cli, folder):
    (folder / "walks.csv").write_text("activity\nrest\n\nwalk\n")
    ran = cli("release", "walks.csv", "--belief", "belief.json", "--epsilon", "1")
    assert ran.code == 2
    assert "--missing" in ran.err
    assert "missing=" not in ran.err


@pytest.mark.parametrize(("level", "words"), [("50", "protects little"), ("1e-9", "noise about")])
def test_levels_that_nobody_means_are_warned_about(cli, level, words):
    ran = cli("calibrate", "--belief", "belief.json", "--length", "40", "--epsilon", level)
    assert ran.code == 0
    assert words in ran.err
    usual = cli("calibrate", "--belief", "belief.json", "--length", "40", "--epsilon", "0.1")
    assert usual.err == ""


def test_persons_are_protected_without_a_belief_and_paid_for_from_a_ledger_of_people(cli, folder):
    ledger = f"sqlite:///{folder}/budget.db"
    made = cli("ledger", "create", ledger, "people", "--people", "--budget", "2")
    assert made.code == 0, made.err
    assert "accounts for persons" in made.out
    pays = ("--ledger", ledger, "--dataset", "people")
    asked = ("--states", "rest,walk", "--protect", "person", "--epsilon", "1")
    ran = cli(*WALKS, *asked, *pays, "--report", "page.html", "--json")
    assert ran.code == 0, ran.err
    assert (ran.document["protects"], ran.document["scale"]) == ("person", 100)
    assert "every person, with the whole of their series" in (folder / "page.html").read_text(
        encoding="utf-8"
    )
    counted = ("count", "visits.csv", "--by", "ward", "--categories", "a,b", "--epsilon", "1")
    counted += ("--subject", "id", "--max-rows", "2", "--adjacency", "replace")
    ran = cli(*counted, *pays, "--report", "counts.html", "--plot", "counts.svg", "--json")
    assert ran.code == 0, ran.err
    assert ran.document["table"]["at_most"] == 2
    assert ran.document["verdict"] in ("useless", "rough", "useful")
    assert "Counts by ward" in (folder / "counts.html").read_text(encoding="utf-8")
    assert cli(*counted, *pays).code == 1
    status = json.loads(cli("ledger", "show", ledger, "people", "--json").out)
    assert status["datasets"][0]["total"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*WALKS, "--epsilon", "1"), "--protect person --states"),
        ((*WALKS, "--epsilon", "1", "--protect", "person"), "--states"),
        ((*WALKS, "--epsilon", "1", "--belief", "belief.json", "--states", "a"), "--states goes"),
        (("ledger", "create", "sqlite:///b.db", "d", "--budget", "1"), "--belief belief.json"),
        (
            (
                "ledger",
                "create",
                "sqlite:///b.db",
                "d",
                "--budget",
                "1",
                "--people",
                "--length",
                "3",
            ),
            "--people needs no belief",
        ),
        (("monitor", "--belief", "belief.json", "--epsilon", "1"), "length is missing"),
        (("monitor", "--belief", "belief.json"), "Give --epsilon"),
        (("monitor", "--belief", "belief.json", "--levels", "walks.csv"), "Line 1"),
    ],
)
def test_what_is_missing_is_named(cli, arguments, words):
    ran = cli(*arguments)
    assert ran.code == 2
    assert words in ran.err


def test_a_preview_without_a_belief_speaks_of_persons_alone(cli):
    asked = ("--states", "rest,walk", "--protect", "person", "--epsilon", "1", "--preview")
    ran = cli(*WALKS, *asked)
    assert ran.code == 0, ran.err
    assert "for every person" in ran.out
    assert "Side by side" not in ran.out


def test_a_preview_shows_all_three(cli):
    ran = cli(*WALKS, "--belief", "belief.json", "--epsilon", "1", "--preview")
    for part in ("each moment", "each stretch of 10", "each person", "Side by side"):
        assert part in ran.out


def test_a_preview_is_written_where_it_is_wanted(cli, folder):
    asked = (*WALKS, "--belief", "belief.json", "--epsilon", "1", "--preview")
    ran = cli(*asked, "--report", "page.html", "--plot", "p.svg", "-o", "p.json")
    assert ran.code == 0, ran.err
    assert "each person" in (folder / "page.html").read_text(encoding="utf-8")
    assert (folder / "p.svg").stat().st_size > 1000
    assert json.loads((folder / "p.json").read_text())["schema"] == "quiltwork/preview"


def test_the_monitor_is_one_command_with_one_picture(cli, folder):
    (folder / "levels.txt").write_text("0.1\n" * 20)
    asked = ("monitor", "--belief", "belief.json", "--under", "1")
    one = cli(*asked, "--epsilon", "0.1", "--length", "20", "--plot", "leak.svg", "--json")
    many = cli(*asked, "--levels", "levels.txt", "--report", "leak.html", "-o", "leak.json")
    assert one.code == many.code == 0, one.err + many.err
    assert one.document == json.loads((folder / "leak.json").read_text())
    assert one.document["most_by_now"] == pytest.approx(0.31148, abs=1e-5)
    assert "By now the leakage is up to 0.311484" in many.out
    assert (folder / "leak.svg").stat().st_size > 1000
    assert "<svg" in (folder / "leak.html").read_text(encoding="utf-8")
