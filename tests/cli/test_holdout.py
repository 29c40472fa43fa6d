"""`quiltwork holdout …` from the outside."""

from __future__ import annotations

import json
import math
import shutil

import pytest

import quiltwork as qw
from quiltwork import files
from quiltwork.holdout.sealed_log import chain_line, secret_path

ROWS = 200


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two tables, predictions that know the training labels only, and predictions of a constant."""
    monkeypatch.chdir(tmp_path)
    for name, first in (("train", 0), ("held", ROWS)):
        lines = ["id,age,home,rent,label"]
        lines += [
            f"{i},{i % 80},{i // 4},{100 + i % 2},{'yes' if i % 2 else 'no'}"
            for i in range(first, first + ROWS)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    known = [f"{i},{'yes' if i % 2 else 'no'}" for i in range(ROWS)]
    guessed = [f"{i},{'no' if i % 2 else 'yes'}" for i in range(ROWS, 2 * ROWS)]
    (tmp_path / "overfit.csv").write_text("\n".join(["id,prediction", *known, *guessed]) + "\n")
    constant = [f"{i},yes" for i in range(2 * ROWS)]
    (tmp_path / "constant.csv").write_text("\n".join(["id,prediction", *constant]) + "\n")
    rents = [f"{i},100" for i in range(2 * ROWS)]
    (tmp_path / "rents.csv").write_text("\n".join(["id,prediction", *rents]) + "\n")
    return tmp_path


def create(cli, *more, target="label", folder="study"):
    tables = ["--train", "train.csv", "--holdout", "held.csv", "--id", "id", "--target", target]
    settings = ["--threshold", "0.2", "--noise", "0.005", "--budget", "2"]
    return cli("holdout", "create", folder, *tables, *settings, *more)


def test_a_study_from_start_to_end(cli, folder):
    assert create(cli).code == 0
    agreed = cli("holdout", "ask", "study", "--predictions", "constant.csv", "--json")
    assert files.load(agreed.out, "holdout-answer", (1,))["value"] == 0.5
    assert agreed.document["overfit"] is False
    for left in (1, 0):
        found = cli("holdout", "ask", "study", "--predictions", "overfit.csv", "--json").document
        assert abs(found["value"]) < 4 * 0.005 * 25
        assert (found["overfit"], found["remaining"]) == (True, left)
    refused = cli("holdout", "ask", "study", "--predictions", "constant.csv")
    assert refused.code == 1
    assert "All 2 rounds" in refused.err
    shown = cli("holdout", "transcript", "study")
    assert "Verified: 3 answers" in shown.out
    status = cli("holdout", "status", "study", "--queries", "50", "--json").document
    assert (status["asked"], status["remaining"], status["questions"]) == (3, 0, 50)
    verified = cli("holdout", "transcript", "study", "--checkpoint", status["checkpoint"])
    assert verified.code == 0
    path = folder / "study" / "transcript.jsonl"
    header = path.read_text().split("\n")[0]
    path.write_text(header.replace('"budget": 2', '"budget": 20') + "\n")
    for command in (["ask", "study", "--share", "id=1"], ["status", "study"]):
        refused = cli("holdout", *command)
        assert refused.code == 3
        assert "cut, edited or replaced" in refused.err


def test_conditions_and_errors_can_be_asked(cli, folder):
    create(cli, target="rent")
    share = cli("holdout", "ask", "study", "--share", "label=yes", "--share", "age>=40")
    assert share.out.startswith("share of label=yes and age>=40: 0.2 (as on the training set)")
    ask = ["holdout", "ask", "study", "--predictions", "rents.csv"]
    error = cli(*ask, "--metric", "neg_mean_absolute_error", "--limits", "0:200", "--json")
    assert error.document["value"] == pytest.approx(0.5, abs=1e-3)


def test_the_noise_of_an_error_is_told_in_its_own_units(cli, folder):
    """A mean of losses in [0, 1] carries √2·4σ, the error as many times that as its range."""
    assert create(cli, "--noise", "0.005", target="rent").code == 0
    rows = [f"{i},{100 + i % 2}" for i in range(ROWS)] + [f"{i},300" for i in range(ROWS, 2 * ROWS)]
    (folder / "far.csv").write_text("\n".join(["id,prediction", *rows]) + "\n")
    ask = ["holdout", "ask", "study", "--predictions", "far.csv", "--metric", "mae"]
    shown = cli(*ask, "--limits", "0:400").out.splitlines()[0]
    assert shown.endswith("(from the holdout, noise of standard deviation 11.3)")
    assert math.isclose(400 * math.sqrt(2) * 4 * 0.005, 11.3, rel_tol=2e-3)


def test_groups_become_clusters_without_their_names(cli, folder):
    assert create(cli, "--group", "home").code == 0
    status = cli("holdout", "status", "study", "--json").document
    assert status["bayesian_epsilon"] == pytest.approx(4 * status["epsilon"])


def test_a_group_on_both_sides_is_refused(cli, folder):
    ran = create(cli, "--group", "label")
    assert ran.code == 2
    assert "both tables" in ran.err


def test_a_ledger_is_debited(cli, folder):
    ledger = qw.Ledger.open("sqlite:///budget.db")
    ledger.create("held", qw.Clusters(range(ROWS)), None, 99)
    create(cli, "--ledger", "sqlite:///budget.db", "--dataset", "held")
    assert cli("holdout", "ask", "study", "--predictions", "constant.csv").code == 0
    assert cli("holdout", "ask", "study", "--predictions", "overfit.csv").code == 0
    assert len(ledger.history("held")) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--predictions", "constant.csv", "--metric", "max_error"],
            "not a function of a few means",
        ),
        (["--predictions", "nothing.csv"], "Cannot read"),
        (["--predictions", "train.csv"], "prediction"),
        (["--predictions", "constant.csv", "--share", "age>=1"], "Ask with"),
        ([], "Ask with"),
        (["--share", "colour=red"], "colour"),
        (["--predictions", "short.csv"], "399 of 400 rows have no prediction"),
        (["--predictions", "twice.csv"], "twice"),
    ],
)
def test_questions_that_make_no_sense_cost_nothing(cli, folder, arguments, words):
    (folder / "short.csv").write_text("id,prediction\n0,yes\n")
    (folder / "twice.csv").write_text("id,prediction\n0,yes\n0,no\n")
    create(cli)
    ran = cli("holdout", "ask", "study", *arguments)
    assert ran.code == 2
    assert words in ran.err
    assert cli("holdout", "status", "study", "--json").document["asked"] == 0


def test_a_holdout_row_without_a_prediction_is_refused_and_costs_nothing(cli, folder):
    """Ids are public, so this is known before the holdout is looked at."""
    lines = (folder / "constant.csv").read_text().splitlines()[: ROWS + 1]
    (folder / "half.csv").write_text("\n".join(lines) + "\n")
    create(cli)
    refused = cli("holdout", "ask", "study", "--predictions", "half.csv")
    assert refused.code == 2
    assert f"{ROWS} of {2 * ROWS} rows have no prediction" in refused.err
    assert "The rows of the training table need predictions too" in refused.err
    status = cli("holdout", "status", "study", "--json").document
    assert (status["asked"], status["remaining"]) == (0, 2)


def test_whole_numbers_written_as_floats_are_the_same_ids_and_labels(cli, folder):
    """As a program writes them that reads a column with a missing value."""
    for name, ending in (("train", ""), ("held", ".0")):
        rows = [line.split(",") for line in (folder / f"{name}.csv").read_text().splitlines()]
        body = [f"{one[0]}{ending},{int(one[4] == 'yes')}{ending}" for one in rows[1:]]
        (folder / f"{name}.csv").write_text("\n".join(["id,label", *body]) + "\n")
    right = [f"{i}.0,{i % 2}.00" for i in range(2 * ROWS)]
    (folder / "right.csv").write_text("\n".join(["id,prediction", *right]) + "\n")
    create(cli)
    found = cli("holdout", "ask", "study", "--predictions", "right.csv", "--json").document
    assert (found["value"], found["overfit"]) == (1.0, False)


@pytest.mark.parametrize(
    ("target", "file", "words"),
    [("rent", "words.csv", "needs numbers here"), ("label", "rents.csv", "No tar")],
)
def test_text_where_a_metric_needs_numbers_costs_nothing(cli, folder, target, file, words):
    said = ["100"] * (2 * ROWS - 1) + ["high"]
    lines = [f"{i},{one}" for i, one in enumerate(said)]
    (folder / "words.csv").write_text("\n".join(["id,prediction", *lines]) + "\n")
    create(cli, target=target)
    ask = ["holdout", "ask", "study", "--predictions", file]
    refused = cli(*ask, "--metric", "neg_mean_absolute_error", "--limits", "0:200")
    assert refused.code == 2
    assert words in refused.err
    assert cli("holdout", "status", "study", "--json").document["asked"] == 0


def rewrite(folder, table, column, change):
    """Change every cell of a column of a table."""
    header, *rows = (line.split(",") for line in (folder / table).read_text().splitlines())
    at = header.index(column)
    for row in rows:
        row[at] = change(row[at])
    (folder / table).write_text("".join(",".join(row) + "\n" for row in [header, *rows]))


@pytest.mark.parametrize(
    ("column", "change", "words"),
    [
        ("age", lambda cell: "old" if int(cell) > 40 else "young", "Column 'age' holds numbers"),
        ("label", lambda cell: str(int(cell == "yes")), "Column 'label' holds text"),
        ("label", str.upper, "no label of column 'label' in common"),
        ("id", lambda cell: str(int(cell) - ROWS), "occurs twice"),
        ("id", lambda cell: "200", "occurs twice"),
    ],
)
def test_tables_that_no_question_reads_alike_are_refused(cli, folder, column, change, words):
    rewrite(folder, "held.csv", column, change)
    refused = create(cli)
    assert refused.code == 2
    assert words in refused.err
    assert not (folder / "study").exists()


def test_a_study_that_was_begun_without_these_checks_is_refused_before_it_pays(cli, folder, paid):
    """The tables are looked at whenever something is asked."""
    rewrite(folder, "held.csv", "label", str.upper)
    refused = cli("holdout", "ask", "study", "--predictions", "constant.csv")
    assert refused.code == 2
    assert debits("budget.db") == 0


def test_missing_cells_and_some_words_among_numbers_are_no_other_kind(cli, folder):
    rewrite(folder, "held.csv", "age", lambda cell: "" if cell == "1" else f"{cell}.0")
    rewrite(folder, "held.csv", "home", lambda cell: "unknown" if cell == "50" else cell)
    assert create(cli).code == 0


@pytest.mark.parametrize(
    ("target", "label", "arguments", "words"),
    [
        ("label", "1", (), "the classes are 'no', 'yes'"),
        ("label", "Yes", (), "the classes are 'no', 'yes'"),
        ("label", "", (), "needs labels here"),
        ("rent", "yes", (), "the classes are '100', '101'"),
        (
            "label",
            "yes",
            ("--share", "age=old"),
            "holds numbers, but the condition compares it with",
        ),
        ("label", "yes", ("--share", "label>=1"), "holds text, but the condition compares it with"),
    ],
)
def test_text_against_numbers_costs_nothing(cli, folder, target, label, arguments, words):
    create(cli, target=target)
    known = [f"{i},{(100 + i % 2) if target == 'rent' else 'no'}" for i in range(ROWS)]
    others = [f"{i},{label}" for i in range(ROWS, 2 * ROWS)]
    (folder / "mine.csv").write_text("\n".join(["id,prediction", *known, *others]) + "\n")
    ran = cli("holdout", "ask", "study", *(arguments or ("--predictions", "mine.csv")))
    assert ran.code == 2
    assert words in ran.err
    assert cli("holdout", "status", "study", "--json").document["asked"] == 0


@pytest.fixture
def paid(cli, folder):
    """A holdout paid for by a ledger in this folder, and another folder's of the same name."""
    (folder / "elsewhere").mkdir()
    for place in ("budget.db", "elsewhere/budget.db"):
        ledger = qw.Ledger.open(f"sqlite:///{place}")
        ledger.create("held", qw.Clusters(range(ROWS)), None, 99)
    assert create(cli, "--ledger", "sqlite:///budget.db", "--dataset", "held").code == 0
    return folder / "study"


def debits(place):
    return len(qw.Ledger.open(f"sqlite:///{place}").history("held"))


def test_a_ledger_is_found_from_every_folder(cli, folder, paid, monkeypatch):
    monkeypatch.chdir(folder / "elsewhere")
    asked = cli("holdout", "ask", str(paid), "--predictions", str(folder / "overfit.csv"))
    assert asked.code == 0
    assert debits(folder / "budget.db") == 1
    assert debits(folder / "elsewhere" / "budget.db") == 0


def test_no_other_ledger_pays_for_a_holdout(cli, folder, paid, monkeypatch):
    ask = ["holdout", "ask", str(paid), "--share", "id=1"]
    other = f"sqlite:///{folder / 'elsewhere' / 'budget.db'}"
    refused = cli(*ask, "--ledger", other)
    assert refused.code == 3
    assert "another ledger" in refused.err
    path = paid / "holdout.json"
    whole = json.loads(path.read_text())
    relative = {**whole, "ledger": "sqlite:///budget.db"}
    for change, where in ((relative, "elsewhere"), ({**whole, "ledger": other}, ".")):
        path.write_text(json.dumps(change))
        monkeypatch.chdir(folder / where)
        refused = cli(*ask)
        assert refused.code == 3
        assert "another ledger" in refused.err
    path.write_text(json.dumps({**whole, "ledger": None}))
    refused = cli(*ask)
    assert refused.code == 2
    assert "debits the ledger's dataset 'held'" in refused.err
    assert debits("elsewhere/budget.db") == 0
    (folder / "budget.db").rename(folder / "moved.db")
    path.write_text(json.dumps(whole))
    assert cli(*ask).code == 3
    assert cli(*ask, "--ledger", "sqlite:///moved.db").code == 0


def test_a_folder_that_is_put_back_does_not_answer_again(cli, folder, paid):
    ask = ["holdout", "ask", "study", "--predictions", "overfit.csv"]
    assert cli(*ask).code == 0
    shutil.copytree(paid, folder / "copy")
    assert cli(*ask).code == 0
    shutil.rmtree(paid)
    (folder / "copy").rename(paid)
    refused = cli(*ask)
    assert refused.code == 3
    assert "debited for round 2 of this holdout, but its files contain only 1" in refused.err
    assert debits("budget.db") == 2


def test_a_ledger_for_a_holdout_without_one_is_refused(cli, folder):
    create(cli)
    refused = cli("holdout", "ask", "study", "--share", "id=1", "--ledger", "sqlite:///budget.db")
    assert refused.code == 2
    assert "leave out --ledger" in refused.err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:CANARY@db/ledger",
        "postgresql://db/ledger?user=ana&password=CANARY",
        "postgresql://db/ledger?sslpassword=CANARY",
    ],
)
def test_no_password_is_kept_or_shown(cli, folder, url):
    refused = create(cli, "--ledger", url, "--dataset", "held")
    assert refused.code == 2
    assert "PGPASSWORD" in refused.err
    assert "CANARY" not in refused.err + refused.out
    assert not (folder / "study").exists()


@pytest.mark.parametrize("place", ["holdout.json", "transcript.jsonl"])
def test_which_column_is_what_is_sealed(cli, folder, place):
    """Another target or group would change what is asked and what the promise rests on."""
    create(cli, "--group", "home", target="label")
    path = folder / "study" / place
    text = path.read_text()
    if place == "holdout.json":
        assert json.loads(text).keys() == {"schema", "version", "train", "holdout", "ledger"}
        edited = json.loads(text) | {"identity": "age", "target": "rent", "group": None}
        path.write_text(json.dumps(edited))
        asked = cli("holdout", "ask", "study", "--predictions", "constant.csv", "--json")
        assert asked.document["value"] == 0.5  # of the label, as before
    else:
        assert '"target": "label"' in text
        path.write_text(text.replace('"target": "label"', '"target": "rent"'))
        refused = cli("holdout", "ask", "study", "--predictions", "constant.csv")
        assert refused.code == 3
        assert "cut, edited or replaced" in refused.err


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{}",
        b'{"schema": "quiltwork/holdout", "version": 2}',
        b'{"schema": "quiltwork/holdout", "version": 9}',
        b'{"schema": "quiltwork/holdout", "version": 2, "train": 5, "holdout": "held.csv", '
        b'"identity": "id", "target": null, "group": null, "ledger": null, "dataset": null}',
    ],
    ids=range(7),
)
def test_a_damaged_configuration_is_refused_with_a_sentence(cli, folder, text):
    create(cli)
    (folder / "study" / "holdout.json").write_bytes(text)
    for command in (
        ["ask", "study", "--share", "id=1"],
        ["status", "study"],
        ["transcript", "study"],
    ):
        refused = cli("holdout", *command)
        assert refused.code == 3
        assert "holdout.json' is damaged" in refused.err
        assert "fault in quiltwork" not in refused.err


def test_a_damaged_transcript_is_refused_with_a_sentence(cli, folder):
    create(cli)
    for text in (b"\xff", b"", b"[" * 100_000, b"{}"):
        (folder / "study" / "transcript.jsonl").write_bytes(text)
        for command in (["ask", "study", "--share", "id=1"], ["status", "study"]):
            refused = cli("holdout", *command)
            assert refused.code in (2, 3)
            assert "fault in quiltwork" not in refused.err


def test_places_that_hold_nothing_are_refused_with_a_sentence(cli, folder):
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "file").write_text("")
    for name in ("loop", "file", "x" * 300, "loop/inside"):
        settings = ["--threshold", "0.2", "--noise", "0.005", "--budget", "2"]
        tables = ["--train", "train.csv", "--holdout", "held.csv", "--id", "id"]
        ran = [
            cli("holdout", "create", name, *tables, *settings),
            cli("holdout", "create", "new", *tables[:3], name, *tables[4:], *settings),
            cli("holdout", "ask", name, "--share", "id=1"),
            cli("holdout", "status", name),
        ]
        assert all(one.code in (2, 3) for one in ran)
        assert not any("fault in quiltwork" in one.err for one in ran)
    (folder / "held.csv").rename(folder / "a\udcffb")  # a name that is no UTF-8 is one
    made = cli("holdout", "create", "n\udcffw", *tables[:3], "a\udcffb", *tables[4:], *settings)
    assert made.code == 0
    assert cli("holdout", "ask", "n\udcffw", "--share", "label=yes").code == 0


def test_tables_that_differ_and_folders_that_are_none_are_refused(cli, folder):
    (folder / "held.csv").write_text("id,x\n1,2\n")
    assert "with the same columns" in create(cli).err
    assert "no holdout in" in cli("holdout", "status", "nowhere").err
    (folder / "held.csv").write_text("id,age\n1\n")
    assert "1 columns and the header 2" in create(cli).err


def test_standings_are_never_written_over_what_a_board_is_made_of(cli, folder):
    board = ["--labels", "held.csv", "--id", "id", "--target", "label", "--submissions", "5"]
    board += ["--class", "no", "--class", "yes"]
    assert cli("leaderboard", "create", "race", *board).code == 0
    own = [*sorted((folder / "race").iterdir()), folder / "held.csv"]
    before = [path.read_bytes() for path in own]
    for path in own:
        refused = cli("leaderboard", "export", "race", "-o", str(path))
        assert (refused.code, "is one of the inputs" in refused.err) == (2, True)
    assert [path.read_bytes() for path in own] == before
    assert cli("leaderboard", "export", "race", "-o", "race/standings.csv").code == 0
    assert "exists already" in create(cli, folder="race").err


def test_lines_that_the_secret_does_not_seal_are_not_answers(cli, folder):
    create(cli)
    cli("holdout", "ask", "study", "--predictions", "constant.csv")
    path = folder / "study" / "transcript.jsonl"
    last = path.read_text().splitlines()[-1]
    body = {**json.loads(last), "number": 2, "value": "1"}
    path.write_text(path.read_text() + chain_line(body, last) + "\n")
    assert cli("holdout", "status", "study", "--json").document["asked"] == 1
    secret_path(path).unlink()
    refused = cli("holdout", "status", "study")
    assert (refused.code, "missing or damaged" in refused.err) == (3, True)


def test_metrics_have_short_names_and_errors_speak_of_options(cli, folder):
    from quiltwork.cli.scoring import SHORT
    from quiltwork.holdout.metrics import NAMES

    assert sorted(SHORT.values()) == sorted(NAMES)
    begin = ["leaderboard", "create", "race", "--labels", "held.csv", "--id", "id"]
    begin += ["--submissions", "2", "--target"]
    classes = ["--class", "no", "--class", "yes"]
    for given, problem in (
        (["rent", "--metric", "rmse"], "such as --limits 0:100;"),
        (["rent", "--metric", "rmse", "--limits", "5"], "two ends such as 0:5000, not '5'"),
        (["rent", "--metric", "r2", "--limits", "0:9"], "give it as --variance, above 0"),
        (["label", "--metric", "f1", "--positive", "yes", *classes], "--floor 0.2"),
        (["label"], "give the public list"),
        (["label", *classes, "--positive", "no", "--metric", "mae", "--limits", "0:1"], "leave"),
    ):
        refused = cli(*begin, *given)
        assert refused.code == 2
        assert problem in " ".join(refused.err.split())
    made = cli(*begin, "rent", "--metric", "mae", "--limits", "0:200", "--json")
    assert made.document["metric"] == "neg_mean_absolute_error"
