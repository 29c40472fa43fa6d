"""`quiltwork ledger …`, from the first dataset to a restored backup."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import quiltwork as qw
from quiltwork.budget import Spending
from quiltwork.errors import BudgetExceeded


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'budget.db'}"


@pytest.fixture
def belief(tmp_path):
    path = tmp_path / "belief.json"
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    path.write_text(chain.to_json())
    return str(path)


@pytest.fixture
def made(cli, url, belief):
    ran = cli(
        "ledger", "create", url, "d", "--belief", belief, "--length", "100", "--budget", "0.5"
    )
    assert ran.code == 0, ran.err
    return qw.Ledger.open(url)


def test_create_and_show(cli, url, made):
    shown = cli("ledger", "show", url)
    assert shown.out.splitlines()[0].split() == [
        *("dataset", "length", "debits", "total", "budget", "left", "state")
    ]
    assert shown.out.splitlines()[1].split() == ["d", "100", "0", "0", "0.5", "0.5", "open"]
    document = cli("ledger", "show", url, "d", "--json").document
    assert document["schema"] == "quiltwork/ledger-status"
    assert document["datasets"][0]["budget"] == "1/2"
    assert "MarkovChain" in cli("ledger", "show", url, "d").out


def test_create_twice_is_an_input_error(cli, url, made, belief):
    ran = cli("ledger", "create", url, "d", "--belief", belief, "--length", "9", "--budget", "1")
    assert ran.code == 2
    assert "exists already" in ran.err


def test_a_budget_that_nobody_means_is_noticed_once(cli, url, made, belief):
    new = ("ledger", "create", url, "e", "--belief", belief, "--length", "9", "--budget", "100")
    assert "Warning: budget is 100" in cli(*new).err
    assert cli("ledger", "show", url, "e").err == ""


def test_history_shows_granted_debits_only(cli, url, made):
    assert cli("ledger", "history", url, "d").out == "No debits yet.\n"
    made.debit("d", Spending.dp(0.01, 1, 10), key="monday", analyst="ana").complete("42")
    with pytest.raises(qw.BudgetExceeded):
        made.debit("d", Spending.dp(9, 1, 10))
    line = cli("ledger", "history", url, "d").out.splitlines()[1]
    for part in ("1..10", "0.01", "declared", "levels", "released", "ana", "monday"):
        assert part in line
    (debit,) = cli("ledger", "history", url, "d", "--json").document["debits"]
    assert debit["spending"]["per_point"] == "1/100"


def test_verify_finds_what_a_checkpoint_remembers(cli, url, made, tmp_path):
    import sqlite3

    made.debit("d", Spending.dp(0.01, 1, 10))
    kept = str(tmp_path / "kept.json")
    assert cli("ledger", "export", url, "--checkpoint", kept).code == 0
    ran = cli("ledger", "verify", url, "--checkpoint", kept)
    assert (ran.code, ran.out.startswith("Intact: 2 entries")) == (0, True)
    connection = sqlite3.connect(tmp_path / "budget.db", isolation_level=None)
    connection.execute("DROP TRIGGER quiltwork_no_delete")
    connection.execute("DELETE FROM quiltwork_entries WHERE seq = 2")
    connection.close()
    assert cli("ledger", "verify", url).code == 0
    ran = cli("ledger", "verify", url, "--checkpoint", kept, "--json")
    assert ran.code == 3
    assert "cut off" in json.loads(ran.err)["error"]["message"]


def test_a_missing_ledger_is_a_storage_failure_and_is_not_created(cli, url, tmp_path):
    for command in (["show", url], ["history", url, "d"], ["verify", url], ["export", url]):
        ran = cli("ledger", *command)
        assert ran.code == 3
        assert "There is no ledger" in ran.err
    assert cli("ledger", "show", "budget.db").code == 2
    assert list(tmp_path.iterdir()) == []


def test_export_and_restore(cli, url, made, tmp_path):
    made.debit("d", Spending.dp(0.01, 1, 10), key="k").complete("answer")
    backup, kept = str(tmp_path / "backup.jsonl"), str(tmp_path / "kept.json")
    assert cli("ledger", "export", url, "--output", backup, "--checkpoint", kept).code == 0
    whole = f"sqlite:///{tmp_path / 'whole.db'}"
    ran = cli("ledger", "restore", backup, whole, "--checkpoint", kept, "--lost", "d=1/1000")
    assert "open" in ran.out
    assert qw.Ledger.open(whole).history("d")[1].spending.dp_epsilon == Fraction(1, 1000)
    assert cli("ledger", "restore", backup, whole + "2", "--lost", "d=0").code == 0
    assert len(qw.Ledger.open(whole + "2").history("d")) == 1
    for bad in ("d", "=1", "d=x", "e=1"):
        assert cli("ledger", "restore", backup, whole + "3", "--lost", bad).code == 2
    doubtful = f"sqlite:///{tmp_path / 'doubtful.db'}"
    ran = cli("ledger", "restore", backup, doubtful, "--checkpoint", kept)
    assert "retired: restored" in ran.out
    assert cli("ledger", "restore", backup, whole).code == 2
    assert qw.Ledger.open(doubtful).answer("d", "k") == "answer"


def test_a_ledger_goes_to_another_place(cli, url, made, tmp_path):
    made.debit("d", Spending.dp(0.01, 1, 10), key="k").complete("answer")
    there, last = f"sqlite:///{tmp_path / 'there.db'}", str(tmp_path / "last.jsonl")
    assert cli("ledger", "export", url, "--last").code == 2
    assert cli("ledger", "export", url, "--last", "--output", last).code == 0
    assert "retired: closed by the last backup" in cli("ledger", "show", url).out
    assert "open" in cli("ledger", "restore", last, there).out
    assert qw.Ledger.open(there).answer("d", "k") == "answer"


def test_growing_shares_and_retirement(cli, url, made):
    assert (
        cli("ledger", "extend", url, "d", "200", "--json").document["datasets"][0]["length"] == 200
    )
    ran = cli("ledger", "allot", url, "d", "ana", "--cap", "0.4", "--reserved", "0.2")
    assert "analyst ana: charged 0, cap 0.4, reserved 0.2" in ran.out
    assert cli("ledger", "allot", url, "d", "ben", "--reserved", "0.4").code == 1
    assert "retired: done" in cli("ledger", "retire", url, "d", "--reason", "done").out


def test_plan_says_what_is_useless(cli, url, made):
    ran = cli("ledger", "plan", url, "d", "--ask", "histogram@10", "--ask", "count:walk@1:50")
    assert ran.code == 0, ran.err
    assert "11 releases cost 0.5" in ran.out
    assert "useless" in ran.out
    document = cli("ledger", "plan", url, "d", "--ask", "histogram", "--json").document
    (release,) = document["releases"]
    assert release["window"] == [1, 100]
    made.debit("d", Spending.of_query(qw.queries.histogram(), release["scale"], 100))
    assert made.status("d").exact_total <= made.status("d").exact_budget
    assert made.status("d").total == pytest.approx(0.5)
    made.retire("d", "done")
    ran = cli("ledger", "plan", url, "d", "--ask", "histogram")
    assert (ran.code, "retired (done)" in ran.err) == (1, True)


def test_plan_for_a_year(cli, url, belief):
    create = ["ledger", "create", url, "year", "--belief", belief, "--budget", "1"]
    assert cli(*create, "--length", "730").code == 0
    kinds = ["--daily", "histogram", "--weekly", "histogram", "--monthly", "count:walk"]
    ran = cli("ledger", "plan", url, "year", "--year", "2025", "--points-per-day", "2", *kinds)
    assert ran.code == 0, ran.err
    assert "429 releases cost 1 " in ran.out


def test_plan_needs_one_kind_of_question(cli, url, made):
    assert cli("ledger", "plan", url, "d").code == 2
    assert cli("ledger", "plan", url, "d", "--ask", "histogram", "--daily", "histogram").code == 2
    assert cli("ledger", "plan", url, "d", "--daily", "histogram").code == 2
    assert cli("ledger", "plan", url, "d", "--ask", "nonsense").code == 2


def test_release_and_count_pay_from_the_ledger(cli, url, belief, made, tmp_path):
    data = tmp_path / "walk.csv"
    data.write_text("state\n" + "rest\nwalk\n" * 50)
    asked = [
        *("release", str(data), "--belief", belief, "--query", "histogram", "--epsilon", "0.2"),
        *("--ledger", url, "--dataset", "d", "--key", "monday", "--json"),
    ]
    first, second = cli(*asked), cli(*asked)
    assert first.code == 0, first.err
    assert first.out == second.out
    assert len(made.history("d")) == 1
    asked[asked.index("monday")] = "tuesday"
    made.allot("d", "ben", cap=0.1)
    made.allot("d", "ana")
    assert cli(*asked, "--analyst", "ben").code == 1
    assert cli(*asked, "--analyst", "ana").code == 0
    assert made.history("d")[-1].analyst == "ana"
    asked[asked.index("tuesday")] = "wednesday"
    asked[asked.index("0.2")] = "0.45"
    assert cli(*asked, "--analyst", "ana").code == 1
    assert cli(*asked).code == 2


def test_a_paid_release_says_what_is_left_and_a_preview_what_it_would_take(
    cli, url, belief, made, tmp_path
):
    data = tmp_path / "walk.csv"
    data.write_text("state\n" + "rest\nwalk\n" * 50)
    asked = [
        *("release", str(data), "--belief", belief, "--query", "histogram", "--epsilon", "0.2"),
        *("--ledger", url, "--dataset", "d"),
    ]
    first = cli(*asked, "--preview").err
    cli(*asked, "--key", "monday")
    total, budget = made.status("d").total, made.status("d").budget
    assert (
        first == f"The total of 'd' would rise from 0 to {total:.6g}, of a budget of {budget:g}.\n"
    )
    left = f"{budget - total:.6g} of {budget:g} is left of 'd' where most was spent; "
    left += "elsewhere more may fit.\n"
    again = cli(*asked, "--key", "monday")
    assert again.err == f"The answer was stored under the key 'monday' and cost nothing. {left}"
    assert "costs nothing" in cli(*asked, "--key", "monday", "--preview").err
    asked[asked.index("0.2")] = "2"
    more = cli(*asked, "--preview")
    assert more.code == 0
    assert more.err.startswith("It would be refused. This would raise the total of 'd' from ")
    assert len(made.history("d")) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("ledger", "show", "postgresql://ana:s3cret@[x/db"),
        ("ledger", "show", "sqlite:///x.db", "d", "postgresql://ana:s3cret@db/ledger"),
        ("fit", "postgresql://ana:s3cret@db/ledger"),
        ("calibrate", "--belief", "b.json", "--epsilon", "postgresql://ana:s3cret@db/ledger"),
        ("audit", "mysql://ana:s3cret@db/ledger", "--debug"),
        ("fit", "postgresql://ana:s3cret@db/ledger", "--value", "x", "--debug", "--json"),
    ],
)
def test_a_password_typed_anywhere_is_not_shown(cli, arguments):
    ran = cli(*arguments)
    assert ran.code == 2
    assert ran.err
    assert "s3cret" not in ran.out + ran.err


def test_what_export_writes_is_for_its_owner_only(cli, url, made, tmp_path):
    written = tmp_path / "backup.jsonl", tmp_path / "monday.json"
    ran = cli("ledger", "export", url, "--output", written[0], "--checkpoint", written[1])
    assert ran.code == 0, ran.err
    assert [path.stat().st_mode & 0o777 for path in written] == [0o600, 0o600]


def test_a_dataset_may_protect_stretches(cli, url, belief, tmp_path):
    create = ["ledger", "create", url, "walks", "--belief", belief, "--length", "100"]
    ran = cli(*create, "--budget", "1", "--protect", "18")
    assert ran.code == 0, ran.err
    assert "protects every stretch of 18 time points" in ran.out
    assert cli("ledger", "show", url, "--json").document["datasets"][0]["episode"] == 18
    plan = ["ledger", "plan", url, "walks", "--ask", "count:walk", "--json"]
    scales = [
        cli(*plan, *more).document["releases"][0]["scale"]
        for more in ([], ["--protect", "1"], ["--protect", "30"])
    ]
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    wanted = [qw.calibrate(chain, 100, 1, episode=episode).scale for episode in (18, 18, 30)]
    assert scales == pytest.approx(wanted, rel=1e-8)
    rows = tmp_path / "rows.csv"
    rows.write_text("s\n" + "rest\nwalk\n" * 50)
    paid = ["--epsilon", "0.1", "--ledger", url, "--dataset", "walks", "--preview", "--json"]
    asked = ["release", str(rows), "--belief", belief, *paid]
    episodes = [cli(*asked, *more).document["episode"] for more in ([], ["--protect", "moment"])]
    assert episodes == [18, 1]


def test_a_plan_says_how_much_of_it_was_spent_before(cli, url, made):
    plan = ["ledger", "plan", url, "d", "--ask", "histogram"]
    assert cli(*plan).out.endswith("Nothing was spent before.\n")
    made.debit("d", Spending.dp(0.01, 1, 10))
    total = made.status("d").total
    assert cli(*plan, "--json").document["spent"] == total
    assert f"That includes what was spent before, which costs {total:.6g} alone." in cli(*plan).out


def test_refusals_are_noted_and_pages_can_be_asked_for(cli, url, made, tmp_path):
    seen = tmp_path / "seen.json"
    assert cli("ledger", "export", url, "--checkpoint", str(seen)).code == 0
    for _ in range(2):
        made.debit("d", Spending.dp(0.01, 1, 10))
    with pytest.raises(BudgetExceeded):
        made.debit("d", Spending.dp(50, 1, 10), analyst="ana")
    (noted,) = json.loads(cli("ledger", "notes", url, "--json").out)["notes"]
    assert (noted["kind"], noted["dataset"], noted["who"]) == ("refusal", "d", "ana")
    assert "ana: This would raise the total" in cli("ledger", "notes", url).out
    whole = json.loads(cli("ledger", "history", url, "d", "--json").out)["debits"]
    page = cli("ledger", "history", url, "d", "--after", str(whole[-2]["number"]), "--limit", "1")
    assert str(whole[-1]["number"]) in page.out
    ran = cli("ledger", "verify", url, "--checkpoint", str(seen), "--since")
    assert "3 entries since" in ran.out
    assert cli("ledger", "verify", url, "--since").code == 2


def test_a_registered_file_is_checked_once_and_tells_nothing_later(cli, url, tmp_path):
    path, belief = tmp_path / "own.csv", tmp_path / "chain.json"
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["ruht", "läuft"])
    belief.write_text(chain.to_json())
    new = ("--belief", str(belief), "--length", "60", "--budget", "5")
    assert cli("ledger", "create", url, "home", *new).code == 0
    asked = ("release", str(path), "--belief", str(belief), "--epsilon", "1", "--value", "s")
    paid = (*asked, "--ledger", url, "--dataset", "home")
    file = ("ledger", "register", url, "home", str(path), "--value", "s")

    path.write_bytes("\n".join(["s;n", *["ruht;1", "läuft;2", "x;3"] * 20]).encode("cp1252"))
    refused = cli(*file)
    assert refused.code == 2
    assert "Position 3 holds none of the belief's states" in refused.err
    path.write_bytes("\n".join(["s;n", *["ruht;1", "läuft;2"] * 30]).encode("cp1252"))
    registered = cli(*file)
    assert registered.code == 0
    assert "cp1252" in registered.err
    assert "60 time points registered for 'home'" in registered.err

    released = cli(*paid)
    assert released.code == 0
    assert "cp1252" not in released.err
    path.write_text("\n".join(["s", *["ruht", "x"] * 30]))
    refused = cli(*paid)
    assert refused.code == 2
    assert "not the files registered for dataset 'home'" in refused.err
    assert "Position" not in refused.err
    assert cli("ledger", "verify", url).code == 0
