"""`quiltwork ledger …`, from the first dataset to a restored backup."""

from __future__ import annotations

import json
import re
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
    assert "belief: a Markov chain of 2 states" in cli("ledger", "show", url, "d").out


def test_create_twice_is_an_input_error(cli, url, made, belief):
    ran = cli("ledger", "create", url, "d", "--belief", belief, "--length", "9", "--budget", "1")
    assert ran.code == 2
    assert "exists already" in ran.err


def test_a_budget_that_nobody_means_is_noticed_once(cli, url, made, belief):
    new = ("ledger", "create", url, "e", "--belief", belief, "--length", "9", "--budget", "100")
    assert "Warning: --budget is 100" in cli(*new).err
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
    ran = cli("ledger", "plan", url, "year", "--year", "2025", "--points-per-day", "2",
              "--begins", "2025-01-01", *kinds)  # fmt: skip
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
    page = tmp_path / "page.html"
    assert cli(*asked, "--report", str(page)).code == 0
    assert "counts stays together within ε = 0.5." in page.read_text(encoding="utf-8")
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
    answered = cli(*asked, "--key", "monday")
    total, budget = made.status("d").total, made.status("d").budget
    assert (
        first == f"The total of 'd' would rise from 0 to {total:.6g}, of a budget of {budget:g}.\n"
    )
    spent = f"The total of dataset d is {total:.6g} of {budget:g}"
    (debit,) = made.history("d")
    more = made.accountant("d").how_many_more(debit.spending)
    assert 0 < more < 10
    fit = "fits" if more == 1 else "fit"
    assert answered.err == f"{spent}; {more} more like this {fit} on the same time points.\n"
    again = cli(*asked, "--key", "monday")
    assert again.err == f"The answer was stored under the key 'monday' and cost nothing. {spent}.\n"
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
    assert "protects every 18 time points in a row" in ran.out
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
    assert f"That includes earlier releases, which cost {total:.6g} alone." in cli(*plan).out


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


class TestPlansThatAreCarriedOut:
    """Every line of a stored plan is released with its noise, and all of them fit."""

    @pytest.fixture
    def stored(self, cli, tmp_path, url):
        def made(belief, *asked, length=400, budget="1"):
            (tmp_path / "belief.json").write_text(belief.to_json())
            named = ("--belief", str(tmp_path / "belief.json"))
            size = ("--length", str(length), "--budget", budget)
            assert cli("ledger", "create", url, "d", *named, *size).code == 0
            kept = str(tmp_path / "plan.json")
            options = [one for ask in asked for one in ("--ask", ask)]
            ran = cli("ledger", "plan", url, "d", *options, "-o", kept)
            assert ran.code == 0, ran.err
            data = (
                ["rest", "walk"] * (length // 2) if belief.states else [0.5, -1.0] * (length // 2)
            )
            rows = "\n".join(str(one) for one in data)
            (tmp_path / "data.csv").write_text(f"value\n{rows}\n")
            start = ("release", str(tmp_path / "data.csv"), "--value", "value", *named)
            return [*start, "--plan", kept, "--ledger", url], json.loads(
                (tmp_path / "plan.json").read_text()
            )

        return made

    @pytest.mark.parametrize(
        ("belief", "asked"),
        [
            (
                qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.2, 0.8], states=["rest", "walk"]),
                ("histogram@100", "count:walk@1:400", "transitions@7:60"),
            ),
            (qw.MarkovChain([[0.5, 0.5], [0.1, 0.9]], "any", states=["rest", "walk"]), ("top:1",)),
            (qw.GaussianSeries(ar=[0.8]), ("mean:-3:3@100", "sum:-3:3@1:30")),
        ],
    )
    def test_every_line_has_the_planned_noise_and_all_of_them_fit(
        self, cli, url, stored, belief, asked
    ):
        begin, plan = stored(belief, *asked)
        for left, line in zip(range(len(plan["releases"]), 0, -1), plan["releases"], strict=True):
            ran = cli(*begin, "--line", line["name"])
            assert ran.code == 0, ran.err
            if left > 1:
                assert f"{left - 1} of the {len(plan['releases'])} releases of the plan" in ran.err
                assert "plan again" not in ran.err
        assert "All releases of the plan are made." in ran.err
        ledger = qw.Ledger.open(url)
        debits = ledger.history("d")
        assert [one.key for one in debits] == [line["name"] for line in plan["releases"]]
        for debit, line in zip(debits, plan["releases"], strict=True):
            planned, spent = 1 / Fraction(str(line["scale"])), debit.spending
            per_unit = {"histogram": 2, "transitions": 2, "top": 2}.get(line["query"]["kind"], 1)
            level = max(spent.per_point, spent.per_pair)
            assert level <= per_unit * planned
            assert level == pytest.approx(float(per_unit * planned), rel=1e-4)
        total = ledger.status("d").total
        assert 0.999 < total <= 1

    def test_a_line_is_named_by_its_time_points_and_made_once(self, cli, url, stored):
        chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
        begin, _ = stored(chain, "histogram@100")
        first = cli(*begin, "--window", "101:200", "--json")
        assert first.document["query"]["window"] == [101, 200]
        assert cli(*begin, "--line", "histogram@100 2", "--json").out == first.out
        assert len(qw.Ledger.open(url).history("d")) == 1

    def test_what_is_no_line_is_refused_with_what_there_is(self, cli, stored, tmp_path):
        chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
        begin, _ = stored(chain, "histogram@100", "count:walk@1:100")
        for words, said in (
            (("--window", "1:99"), "no release about the time points 1..99"),
            (("--window", "1:100"), "2 releases about the time points 1..100"),
            (("--line", "monthly 3"), "no release 'monthly 3'"),
            ((), "--window, or --line"),
            (("--line", "histogram@100 2", "--epsilon", "1"), "goes without"),
        ):
            ran = cli(*begin, *words)
            assert ran.code == 2
            assert said in ran.err
        other = tmp_path / "other.json"
        other.write_text(
            qw.MarkovChain([[0.8, 0.2], [0.4, 0.6]], states=["rest", "walk"]).to_json()
        )
        changed = [str(other) if one.endswith("belief.json") else one for one in begin]
        assert "made for the beliefs of dataset 'd'" in cli(*changed, "--line", "x").err


class TestOtherPrograms:
    """One budget is for whatever is released, whatever made it."""

    def test_add_remove_levels_count_twice(self, cli, url, made):
        spend = ("ledger", "spend", url, "d", "--epsilon", "0.01", "--start", "3", "--stop", "9")
        for neighbours, level in (("add-remove", "1/50"), ("substitute", "1/100")):
            ran = cli(*spend, "--neighbours", neighbours, "--what", "OpenDP report", "--json")
            assert ran.document["spending"]["per_point"] == level
            assert ran.document["total"] == made.status("d").total
        assert [one.spending.label for one in made.history("d")] == ["OpenDP report"] * 2
        assert "OpenDP report" in cli("ledger", "history", url, "d").out

    def test_a_budget_with_a_delta_takes_gaussian_levels(self, cli, url, belief):
        new = ("--belief", belief, "--length", "100", "--budget", "1", "--delta", "1e-6")
        assert cli("ledger", "create", url, "g", *new).code == 0
        ran = cli("ledger", "spend", url, "g", "--rho", "0.0005", "--what", "noisy sums")
        assert ran.code == 0, ran.err
        assert "% of what ε = 1 and δ = 1e-06 allow is used of 'g'" in ran.out
        (debit,) = qw.Ledger.open(url).history("g")
        assert debit.spending.square == Fraction(1, 1000)

    def test_it_has_to_be_said_what_a_level_is_for(self, cli, url, made):
        ran = cli("ledger", "spend", url, "d", "--epsilon", "0.01")
        assert ran.code == 2
        assert "--neighbours add-remove" in ran.err
        assert not made.history("d")

    def test_a_retry_under_a_key_debits_nothing(self, cli, url, made):
        spend = ("ledger", "spend", url, "d", "--epsilon", "0.01", "--neighbours", "substitute")
        first, again = (cli(*spend, "--key", "monday", "--json").document for _ in range(2))
        assert first == again
        assert len(made.history("d")) == 1

    def test_what_does_not_fit_is_refused_with_what_does(self, cli, url, made):
        ran = cli("ledger", "spend", url, "d", "--epsilon", "1", "--neighbours", "substitute")
        assert ran.code == 1
        assert re.search(r"--epsilon \S+ --neighbours substitute fits", ran.err)

    @pytest.mark.parametrize("analyst", [None, "ana"])
    def test_the_largest_release_fits_and_a_larger_one_does_not(self, cli, url, made, analyst):
        if analyst:
            made.allot("d", "ana", cap=Fraction(1, 5))
        who = ("--analyst", analyst) if analyst else ()
        ask = ("--window", "11:50", "--ask", "count:walk")
        found = cli("ledger", "largest", url, "d", *ask, *who, "--json").document
        fits = [Spending.dp(found["level"], 11, 50)]
        fits.append(Spending.of_query(qw.queries.count("walk").on(11, 50), found["scale"], 100))
        for one in fits:
            assert made.preview("d", one, analyst).fits
            assert not made.preview("d", one.times(Fraction(102, 100)), analyst).fits
        text = cli("ledger", "largest", url, "d", *ask, *who).out
        assert "still fits" in text
        made.retire("d")
        assert "No further release fits" in cli("ledger", "largest", url, "d", *ask, *who).out


def test_a_release_stores_its_certificate_and_writes_it(cli, url, belief, made, tmp_path):
    data, proof = tmp_path / "walk.csv", tmp_path / "proof.json"
    data.write_text("state\n" + "rest\nwalk\n" * 50)
    asked = [
        *("release", str(data), "--belief", belief, "--query", "count:walk", "--epsilon", "0.2"),
        *("--certificate", str(proof)),
    ]
    paid = ["--ledger", url, "--dataset", "d"]
    for key in (["--key", "monday"], ["--key", "monday"], []):
        proof.unlink(missing_ok=True)
        ran = cli(*asked, *paid, *key)
        assert ran.code == 0, ran.err
        assert cli("audit", "--certificate", str(proof), "--belief", belief).code == 0
    first, second = made.history("d")
    assert first.certificate == second.certificate is not None
    document = cli("ledger", "history", url, "d", "--json").document
    assert document["debits"][0]["certificate"] == first.certificate
    verified = cli("ledger", "verify", url, "--certificates")
    assert "Every stored certificate proves its debit." in verified.out
    assert cli("ledger", "verify", url, "--certificates", "--since").code == 2
    assert cli(*asked).code == 2
    assert cli(*asked, *paid, "--preview").code == 2


def test_a_certificate_for_gaussian_noise_is_refused_before_anything_is_spent(
    cli, url, belief, made, tmp_path
):
    data, proof = tmp_path / "walk.csv", tmp_path / "proof.json"
    data.write_text("state\n" + "rest\nwalk\n" * 50)
    made.create("g", made.status("d").beliefs, 100, 1, delta=1e-6)
    ran = cli(
        *("release", str(data), "--belief", belief, "--query", "count:walk", "--epsilon", "0.2"),
        *("--noise", "gaussian", "--delta", "1e-9", "--ledger", url, "--dataset", "g"),
        *("--certificate", str(proof)),
    )
    assert ran.code == 2
    assert "pure epsilon" in ran.err
    assert made.history("g") == ()
    assert not proof.exists()
