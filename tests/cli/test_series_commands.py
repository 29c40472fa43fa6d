"""`fit`, `calibrate` and `release` from the outside."""

from __future__ import annotations

import json

import pytest

from quiltwork import MarkovChain, files
from quiltwork.beliefs import belief_from_json, beliefs_from_json
from quiltwork.series import Release


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Five volunteers and one patient, two states, minute by minute; a belief about them."""
    monkeypatch.chdir(tmp_path)
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    rows = [
        f"v{person},{minute},{state}"
        for person in range(5)
        for minute, state in enumerate(chain.sample(400, seed=person))
    ]
    header = "person,minute,activity"
    (tmp_path / "volunteers.csv").write_text("\n".join([header, *rows]))
    patient = [f"p,{minute},{state}" for minute, state in enumerate(chain.sample(300, seed=99))]
    (tmp_path / "patient.csv").write_text("\n".join([header, *patient]))
    (tmp_path / "belief.json").write_text(chain.to_json())
    return tmp_path


READ = ("--value", "activity", "--subject", "person", "--time", "minute")


def belief_of(ran):
    """The first belief in the document that `fit --json` prints."""
    return beliefs_from_json(json.dumps(ran.document["belief"]))[0]


def test_fit_writes_a_chain_that_release_takes(cli, folder):
    ran = cli("fit", "volunteers.csv", *READ, "--single", "-o", "fitted.json")
    assert ran.code == 0, ran.err
    fitted = belief_from_json((folder / "fitted.json").read_text())
    assert fitted.states == ("rest", "walk")
    assert abs(fitted.transition[0, 0] - 0.9) < 0.05
    assert "2,000 time points in 5 sequences" in ran.out
    ran = cli(
        *("release", "patient.csv", *READ, "--belief", "fitted.json", "--epsilon", "60"),
        *("--query", "histogram", "-o", "release.json"),
    )
    assert ran.code == 0, ran.err
    released = Release.from_json((folder / "release.json").read_text())
    truth = (folder / "patient.csv").read_text().count("walk")
    assert released.as_dict() == {"rest": 300 - truth, "walk": truth}


def test_fit_box_and_json(cli, folder):
    ran = cli("fit", "volunteers.csv", *READ, "--box", "--confidence", "0.9", "--json")
    box = belief_of(ran)
    assert box.lower[0, 0] < 0.9 < box.upper[0, 0]
    assert box.states == ("rest", "walk")
    assert "Nothing was written" in cli("fit", "volunteers.csv", *READ, "--box").out


@pytest.mark.parametrize("kind", [("--single",), ("--box",)])
def test_fit_adds_no_state_to_those_declared(cli, folder, kind):
    (folder / "more.csv").write_text("activity\nrest\nwalk\nzq7canary\nrest\n\n")
    fit = ("fit", "more.csv", "--missing", "state", "-o", "new.json", *kind, "--states")
    refused = cli(*fit, "rest,walk")
    assert refused.code == 2
    assert "Row 3 of column 'activity' holds none of the states 'rest', 'walk'" in refused.err
    assert "canary" not in refused.err
    assert not (folder / "new.json").exists()
    assert cli(*fit, "walk,rest,zq7canary,run").code == 0
    fitted = belief_from_json((folder / "new.json").read_text())
    assert fitted.states == ("walk", "rest", "zq7canary", "run", "missing")
    both = cli("fit", "volunteers.csv", *READ, "--edges", "1", "--states", "rest,walk")
    assert "leave out --states" in both.err


def test_declared_states_and_edges(cli, folder):
    fit = ("fit", "volunteers.csv", "--single", "--json")
    ran = cli(*fit, *READ, "--states", "rest,walk,run")
    assert belief_of(ran).states == ("rest", "walk", "run")
    ran = cli(*fit, "--value", "minute", "--edges", "100,200")
    assert belief_of(ran).states == ("<100", "100..200", ">=200")


def test_calibrate_explains_the_scale(cli, folder):
    ran = cli("calibrate", "--belief", "belief.json", "--length", "100", "--epsilon", "1")
    assert ran.code == 0, ran.err
    assert "Noise scale 3.33641 " in ran.out
    assert "Neighbours add 0.350138 from before and 0.350138 from after" in ran.out
    asked = ("calibrate", "--belief", "belief.json", "--length", "100", "--epsilon", "1", "--json")
    assert cli(*asked).document["scale"] == pytest.approx(3.336409, abs=1e-6)
    exact = cli(*asked, "--method", "exact").document
    assert exact["scale"] == pytest.approx(12.839964, abs=1e-6)


def test_calibrate_compares_methods(cli, folder):
    ran = cli(
        "calibrate", "--belief", "belief.json", "--length", "100", "--epsilon", "1", "--compare"
    )
    assert ran.code == 0, ran.err
    lines = {line.split()[0]: line for line in ran.out.splitlines()}
    assert "3.33641  worst time point" in lines["sweep"]
    assert "12.84" in lines["exact"]
    assert "15.652" in lines["approx"]
    assert "not private" in lines["entry"]
    document = files.load(
        cli(
            *(
                "calibrate",
                "--belief",
                "belief.json",
                "--length",
                "100",
                "--epsilon",
                "1",
                "--compare",
            ),
            "--json",
        ).out,
        "calibration-comparison",
        (1,),
    )
    assert [row["method"] for row in document["methods"]][:3] == [
        *("sweep", "exact", "approx"),
    ]


def test_calibrate_on_a_window_needs_less(cli, folder):
    def scale(*more: str) -> float:
        common = (
            "calibrate",
            "--belief",
            "belief.json",
            "--length",
            "100",
            "--epsilon",
            "1",
            "--json",
        )
        return cli(*common, "--query", "count:walk", *more).document["scale"]

    assert scale("--window", "40:42", "--method", "exact") == pytest.approx(3, rel=0.3)
    assert scale("--window", "40:42") == pytest.approx(2.062044, abs=1e-6)
    assert scale("--window", "40:42") < scale()
    assert scale("--secrets", "1:1") <= scale()


@pytest.mark.parametrize(
    "query", ["frequencies", "transitions", "count:walk", "most-common", "histogram"]
)
def test_release_answers_every_query(cli, folder, query):
    ran = cli(
        *("release", "patient.csv", *READ, "--belief", "belief.json", "--epsilon", "1"),
        *("--query", query),
    )
    assert ran.code == 0, ran.err
    assert "walk" in ran.out or "rest" in ran.out
    assert "protects" in ran.out.lower()


def test_release_of_numbers(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("kw\n0.5\n1.0\n1.0\n0.5\n")
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=[0.5, 1.0])
    (tmp_path / "b.json").write_text(chain.to_json())
    ran = cli(
        *("release", "x.csv", "--belief", "b.json", "--epsilon", "60", "--query", "mean:0:1"),
        "--json",
    )
    assert ran.code == 0, ran.err
    assert Release.from_json(ran.out).value == pytest.approx(0.75, abs=0.05)


def test_release_apart_gives_each_subject_its_own(cli, folder):
    ran = cli(
        *("release", "volunteers.csv", *READ, "--belief", "belief.json", "--epsilon", "60"),
        *("--apart", "--json"),
    )
    document = files.load(ran.out, "releases", (1,))
    assert list(document["releases"]) == ["v0", "v1", "v2", "v3", "v4"]
    each = [Release.from_json(json.dumps(one)) for one in document["releases"].values()]
    assert [sum(release.value) for release in each] == [400] * 5


def test_public_gaps_are_left_out_of_counts_and_said_in_previews(cli, folder):
    text = (folder / "volunteers.csv").read_text().splitlines()
    kept = [line for line in text if not line.split(",")[1].endswith("50")]
    (folder / "gaps.csv").write_text("\n".join(kept))
    asked = ("release", "gaps.csv", *READ, "--every", "1min", "--missing", "public", "--belief")
    asked = (*asked, "belief.json", "--epsilon", "60")
    each = cli(*asked, "--apart", "--json").document["releases"]
    assert list(each) == ["v0", "v1", "v2", "v3", "v4"]
    assert [sum(one["value"]) for one in each.values()] == [396] * 5
    part = cli(*asked, "--apart", "--json", "--window", "1970-01-01 01:00..1970-01-01 02:00")
    assert [sum(one["value"]) for one in part.document["releases"].values()] == [60] * 5
    seen = cli(*asked, "--preview")
    assert "each person" in seen.out
    for said in (seen.err, seen.out, cli(*asked).out):
        assert "treated as public and independent of the states" in said
    assert "20 of the 2,000 time points asked about have no record" in seen.out


def test_preview_spends_nothing_and_reads_no_answer(cli, folder):
    common = ("release", "volunteers.csv", *READ, "--belief", "belief.json", "--epsilon", "1")
    ran = cli(*common, "--preview", "--json")
    assert files.load(ran.out, "preview", (1,))["cells"] == 2
    assert "the expected error" in cli(*common, "--preview").out


def test_a_preview_is_of_the_method_and_the_secrets_asked_for(cli, folder):
    common = ("release", "patient.csv", *READ, "--belief", "belief.json", "--epsilon", "1")
    asked = (*common, "--preview", "--json")
    plain, group, first = (
        cli(*asked, *more).document for more in ((), ("--method", "group"), ("--secrets", "1:1"))
    )
    assert group["scale"] > plain["scale"] > first["scale"]
    ran = cli(*asked, "--method", "entry")
    assert "may leak up to" in ran.err
    assert ran.document["guarantee"] > 1 == plain["guarantee"]


def test_plot_is_drawn(cli, folder):
    ran = cli(
        *("release", "patient.csv", *READ, "--belief", "belief.json", "--epsilon", "1"),
        *("--plot", "release.svg"),
    )
    assert ran.code == 0, ran.err
    assert "<svg" in (folder / "release.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--query", "median"), "Cannot read the query"),
        (("--query", "count:run"), "not a state of the belief"),
        (("--query", "mean:a:b"), "not a number"),
        (("--window", "9"), "Cannot read the window"),
        (("--window", "9:3"), "window"),
        (("--window", "1:999"), "does not fit"),
        (("--epsilon", "0"), "greater than 0"),
        (("--epsilon", "nan"), "not a number"),
        (("--dataset", "d"), "go with --ledger"),
        (("--apart", "--plot", "x.svg"), "--apart"),
        (("--belief", "absent.json"), "Cannot read 'absent.json'"),
        (("--value", "nothing"), "is not there"),
    ],
)
def test_bad_requests_get_a_sentence_and_exit_code_2(cli, folder, arguments, message):
    defaults = {"--belief": "belief.json", "--epsilon": "1", "--value": "activity"}
    given = [
        part for name, value in defaults.items() if name not in arguments for part in (name, value)
    ]
    ran = cli("release", "patient.csv", *given, *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_unknown_states_are_refused_before_release(cli, folder):
    (folder / "strange.csv").write_text("activity\nrest\nfly\n")
    ran = cli("release", "strange.csv", "--belief", "belief.json", "--epsilon", "1")
    assert ran.code == 2
    assert "Position 2 holds none of the belief's states" in ran.err
    assert "fly" not in ran.err


def test_releasing_the_fitted_data_warns(cli, folder):
    cli("fit", "patient.csv", *READ, "-o", "own.json")
    ran = cli("release", "patient.csv", *READ, "--belief", "own.json", "--epsilon", "1")
    assert ran.code == 0
    assert "fitted on the data" in ran.err


@pytest.fixture
def meters(tmp_path, monkeypatch):
    """Readings every 15 minutes: a pilot's and a home's, and a belief fitted on hours."""
    monkeypatch.chdir(tmp_path)
    chain = MarkovChain([[0.95, 0.05], [0.1, 0.9]], states=[0.25, 1.25])
    for seed, name in enumerate(("pilot", "home")):
        rows = [
            f"{1_767_225_600 + 900 * i},{kw}" for i, kw in enumerate(chain.sample(800, seed=seed))
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["time,kw", *rows]))
    return tmp_path


FIT = (
    "fit",
    "pilot.csv",
    "--value",
    "kw",
    "--time",
    "time",
    "--edges",
    "1",
    "--labels",
    "low,high",
)
RELEASE = ("release", "home.csv", "--value", "kw", "--time", "time", "--epsilon", "1")


def test_a_belief_fitted_on_hours_is_used_on_hours_only(cli, meters):
    for step in ("1h", "15min"):
        assert cli(*FIT, "--every", step, "-o", f"{step}.json").code == 0
    ran = cli(*RELEASE, "--belief", "1h.json", "--json")
    given = ("--every", "1h", "--edges", "1", "--labels", "low,high", "--rule", "mean")
    same = cli(*RELEASE, "--belief", "1h.json", *given, "--json")
    assert ran.code == same.code == 0, ran.err
    assert ran.document["length"] == same.document["length"] == 200
    assert ran.document["noise_scale"] == same.document["noise_scale"]
    assert ran.document["cells"] == ["low", "high"]
    quarter = cli(*RELEASE, "--belief", "15min.json", "--json").document
    assert quarter["length"] == 800
    assert quarter["noise_scale"] != ran.document["noise_scale"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--every", "15min"), "made for steps of 1h, and steps of 15min were asked for"),
        (("--edges", "0.5"), "made for the edges 1.0, and the edges 0.5 were asked for"),
        (("--edges", "1", "--labels", "high,low"), "made for the states 'low', 'high', and"),
        (("--rule", "max"), "made for the mean of each step"),
        (("--preview", "--every", "15min"), "made for steps of 1h"),
        (
            ("--belief", "quarter.json"),
            "was made for steps of 15min, another before it for steps of 1h",
        ),
    ],
)
def test_another_grid_than_the_beliefs_is_refused(cli, meters, options, words):
    assert cli(*FIT, "--every", "1h", "-o", "hour.json").code == 0
    assert cli(*FIT, "--every", "15min", "--box", "-o", "quarter.json").code == 0
    ran = cli(*RELEASE, "--belief", "hour.json", *options)
    assert ran.code == 2
    assert words in ran.err


def test_a_belief_on_steps_needs_times(cli, meters):
    assert cli(*FIT, "--every", "1h", "-o", "hour.json").code == 0
    ran = cli("release", "home.csv", "--value", "kw", "--epsilon", "1", "--belief", "hour.json")
    assert ran.code == 2
    assert "name the time column, --time" in ran.err


def test_what_a_time_point_is_is_said_wherever_a_length_is_asked_for(cli, meters):
    assert cli(*FIT, "--every", "1h", "-o", "hour.json").code == 0
    ran = cli("calibrate", "--belief", "hour.json", "--length", "24", "--epsilon", "1")
    assert "A time point is a step of 1h." in ran.out
    ran = cli(
        *("ledger", "create", "sqlite:///budget.db", "home", "--belief", "hour.json"),
        *("--length", "400", "--budget", "1"),
    )
    assert "every 1h, edges 1" in ran.out
    week = (*RELEASE, "--belief", "hour.json", "--window", "1:168", "--beginning")
    assert "goes with --ledger" in cli(*week).err
    paid = ("--ledger", "sqlite:///budget.db", "--dataset", "home", "--key", "week 1")
    refused = cli(*week[:-1], *paid)
    assert "have 200 time points, dataset 'home' has 400" in refused.err
    assert "say so with --beginning." in refused.err
    first = cli(*week, *paid, "--json").document
    assert cli(*week, *paid, "--json").document == first


def test_a_belief_says_nothing_of_the_data_but_its_matrix(cli, folder):
    """Two files of one name with the same transitions give one document, byte for byte."""
    documents = set()
    for text in ("rwwrrw", "rrwwrw"):
        (folder / "own.csv").write_text("\n".join(["s", *text]))
        fitted = cli("fit", "own.csv", "--single", "--json").document["belief"]
        documents.add(json.dumps(fitted))
    assert len(documents) == 1
    (folder / "other.csv").write_text("\n".join(["s", *"rrwwrw"]))
    (folder / "own.json").write_text(documents.pop())
    warned = cli("release", "./own.csv", "--belief", "own.json", "--epsilon", "1")
    silent = cli("release", "other.csv", "--belief", "own.json", "--epsilon", "1")
    assert "fitted on the data" in warned.err
    assert silent.err == ""


def test_protect_takes_durations_where_the_step_is_known(cli, meters):
    assert cli(*FIT, "--every", "1h", "-o", "hour.json").code == 0
    ran = cli(*RELEASE, "--belief", "hour.json", "--protect", "3h", "--json")
    assert ran.code == 0, ran.err
    assert ran.document["episode"] == 3
    asked = ("calibrate", "--belief", "hour.json", "--length", "200", "--epsilon", "1")
    numbers = ("--query", "histogram", "--json", "--protect")
    same = cli(*asked, *numbers, "150min").document
    assert (same["episode"], same["scale"]) == (3, cli(*asked, *numbers, "3").document["scale"])
    assert "stretch of 3 time points" in cli(*asked, "--protect", "3").out
    preview = (*RELEASE, "--belief", "hour.json", "--protect", "3h", "--preview")
    assert "for every stretch of 3 time points" in cli(*preview).out
    assert "stretch of 3 time points with" in cli(*preview[:-1]).out


@pytest.mark.parametrize(
    ("protect", "words"),
    [("3h", "How many time points are 3h?"), ("0", "--protect"), ("some", "duration 'some'")],
)
def test_protect_says_what_it_cannot_read(cli, folder, protect, words):
    asked = ("calibrate", "--belief", "belief.json", "--length", "100", "--epsilon", "1")
    ran = cli(*asked, "--protect", protect)
    assert ran.code == 2
    assert words in ran.err


def test_the_page_of_a_release_tells_what_others_would_learn(cli, folder):
    sticky = MarkovChain([[0.98, 0.02], [0.1, 0.9]], states=["rest", "walk"])
    (folder / "sticky.json").write_text(sticky.to_json())
    asked = ("release", "patient.csv", *READ, "--belief", "belief.json", "--epsilon", "1")
    ran = cli(*asked, "--report", "page.html", "--others", "sticky.json", "--json")
    assert ran.code == 0, ran.err
    told = Release.from_json(ran.out).leak_under([sticky])[0]
    assert told > 1.2
    assert f"at most {told:.6g}" in (folder / "page.html").read_text(encoding="utf-8")
    assert cli(*asked, "--others", "sticky.json").code == 2
    other = MarkovChain(sticky.transition, states=["walk", "rest"])
    (folder / "other.json").write_text(other.to_json())
    ran = cli(*asked, "--report", "page.html", "--others", "other.json")
    assert (ran.code, "in their order" in ran.err) == (2, True)


def test_a_window_of_a_series_with_gaps_counts_what_was_recorded(cli, folder):
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    hours = [(day, hour) for day in range(1, 9) for hour in range(24) if (day, hour) != (4, 5)]
    states = chain.sample(len(hours), seed=5)
    rows = [f"2026-03-{d:02d} {h:02d}:00,{s}" for (d, h), s in zip(hours, states, strict=True)]
    (folder / "gap.csv").write_text("\n".join(["time,activity", *rows]))
    asked = ["release", "gap.csv", "--value", "activity", "--time", "time", "--every", "1h"]
    asked += ["--missing", "public", "--belief", "belief.json", "--epsilon", "900"]
    ran = cli(*asked, "--window", "2026-03-04:2026-03-05")
    inside = [s for (day, _), s in zip(hours, states, strict=True) if day in (4, 5)]
    assert ran.code == 0, ran.err
    found = {line.split()[0]: line.split()[1] for line in ran.out.splitlines()[1:3]}
    assert found == {name: str(inside.count(name)) for name in ("rest", "walk")}
    assert "From 2026-03-04T00:00 to 2026-03-06T00:00." in ran.out
    assert cli(*asked, "--window", "Mondays 18:00-22:00").code == 0
    made = ["--belief", "belief.json", "--length", "192", "--budget", "999"]
    assert cli("ledger", "create", "sqlite:///b.db", "d", *made).code == 0
    pays = ["--window", "2026-03-04", "--ledger", "sqlite:///b.db", "--dataset", "d"]
    ran = cli(*asked, *pays)
    assert ran.code == 2
    assert "public gaps are registered with the data" in ran.err
    same = ["--value", "activity", "--time", "time", "--every", "1h", "--missing", "public"]
    assert cli("ledger", "register", "sqlite:///b.db", "d", "gap.csv", *same).code == 0
    ran = cli(*asked, *pays)
    assert ran.code == 0, ran.err


def test_gaussian_noise_goes_with_a_delta(cli, folder):
    asked = ("release", "patient.csv", *READ, "--belief", "belief.json", "--epsilon", "1")
    ran = cli(*asked, "--noise", "gaussian", "--delta", "1e-6", "--json")
    assert ran.code == 0, ran.err
    released = Release.from_json(ran.out)
    assert (float(released.delta), released.mechanism) == (1e-6, "rounded gaussian")
    assert released.scale == pytest.approx(19.9, rel=0.01)
    ran = cli(*asked, "--noise", "gaussian", "--delta", "1e-6", "--preview")
    assert "δ = 1e-06" in ran.out
    for wrong in (("--noise", "gaussian"), ("--delta", "1e-6")):
        ran = cli(*asked, *wrong)
        assert (ran.code, "goes with --delta" in ran.err) == (2, True)
