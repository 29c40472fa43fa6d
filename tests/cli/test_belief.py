"""`belief` and `belief check` from the outside."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest

from quiltwork import CyclicChain, GaussianSeries, MarkovChain, calibrate, queries
from quiltwork.beliefs import belief_from_json, beliefs_to_json

ANSWERS = ("belief", "--states", "rest,walk,run", "--lasting", "30min,10min,5min")
MADE = (*ANSWERS, "--every", "1min", "--sure", "0.05")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three volunteers, minute by minute for a day, whose stays are as long as each other."""
    monkeypatch.chdir(tmp_path)
    rng, rows = np.random.default_rng(3), ["person,time,activity"]
    for person in range(3):
        states: list[str] = []
        while len(states) < 1440:
            states += ["rest"] * int(rng.integers(25, 36)) + ["walk"] * int(rng.integers(8, 13))
        rows += [
            f"p{person},2026-01-0{person + 5}T{minute // 60:02}:{minute % 60:02},{state}"
            for minute, state in enumerate(states[:1440])
        ]
    (tmp_path / "public.csv").write_text("\n".join(rows) + "\n")
    two = MarkovChain([[29 / 30, 1 / 30], [0.1, 0.9]], states=["rest", "walk"])
    (tmp_path / "belief.json").write_text(two.to_json())
    return tmp_path


READ = ("--value", "activity", "--time", "time", "--subject", "person")
CHECK = ("belief", "check", "--belief", "belief.json", "--against", "public.csv", *READ)


def test_answers_become_a_belief_with_its_reasons(cli, folder):
    ran = cli(*MADE, "-o", "new.json")
    assert ran.code == 0, ran.err
    text = (folder / "new.json").read_text()
    made = belief_from_json(text)
    assert made.states == ("rest", "walk", "run")
    assert made.grid.step == 60
    assert made.lower[1].tolist() == [0.025, 0.85, 0.025]
    assert "A stay in rest lasts 30 time points (30min) on average" in ran.out
    kept = json.loads(text)
    assert kept["reasons"][0] in ran.out
    scale = calibrate(made, 1440, 1, query=queries.histogram()).scale
    assert kept["noise"] == {"query": "histogram", "epsilon": 1, "length": 1440, "scale": scale}
    assert f"noise of scale {scale:.4g}" in ran.out
    bars = [line.split() for line in ran.out.split("margin  noise")[1].splitlines()[1:7]]
    assert [bar[0] for bar in bars] == ["0", "0.01", "0.02", "0.05", "0.1", "0.2"]
    assert [len(bar[2]) for bar in bars] == sorted(len(bar[2]) for bar in bars)
    assert cli("calibrate", "--belief", "new.json", "--length", "1440", "--epsilon", "1").code == 0


def test_exact_answers_become_a_chain_and_json(cli, folder):
    ran = cli(*ANSWERS[:-1], "4,2,5/2", "--to", "run=walk:3,rest", "--sure", "0", "--json")
    chain = belief_from_json(ran.out)
    assert isinstance(chain, MarkovChain)
    assert chain.transition.tolist() == [[0.75, 0.125, 0.125], [0.25, 0.5, 0.25], [0.1, 0.3, 0.6]]


@pytest.mark.parametrize("name", ["noise.svg", "noise.PNG"])
def test_the_chart_is_written(cli, folder, name):
    few = ("belief", "--states", "rest,walk", "--lasting", "3,2", "--sure", "0")
    assert cli(*few, "--plot", name).code == 0
    start = (folder / name).read_bytes()[:4]
    assert start in (b"<svg", b"\x89PNG")


@pytest.mark.parametrize(
    "answers", ["rest,walk\n\n10\n4\n0\n", "rest,walk\nsoon\n1h\n10h\na while\n4\n0\n"]
)
def test_a_terminal_is_asked(cli, folder, monkeypatch, answers):
    typed = io.StringIO(answers)
    typed.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", typed)
    ran = cli("belief", "--json")
    assert ran.code == 0, ran.err
    assert belief_from_json(ran.out).transition.tolist() == [[0.9, 0.1], [0.25, 0.75]]
    assert "How long does a stay in walk last" in ran.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("belief",), "give --states"),
        (("belief", "--states", "a,b"), "give --lasting"),
        (("belief", "--states", "a,b", "--lasting", "2,2"), "give --sure"),
        ((*ANSWERS, "--sure", "0"), "30min is a duration"),
        ((*MADE[:-1], "0.7"), "from 0 to 0.5"),
        ((*MADE, "--to", "rest"), "STATE=NEXT"),
        ((*MADE, "--to", "swim=rest"), "not one of the states, which are rest, walk, run"),
        ((*MADE, "--plot", "chart.foo"), ".png, .svg or .pdf"),
        (("belief", "--states", "a,b", "--lasting", "0,2", "--sure", "0"), "from 1 to"),
        (("belief", "check", "--belief", "belief.json"), "--against"),
        ((*CHECK, "--epsilon", "0"), "epsilon"),
        ((*CHECK, "--length", "0"), "length"),
        ((*CHECK, "--plot", "fit.foo"), ".png, .svg or .pdf"),
    ],
)
def test_what_is_missing_or_makes_no_sense_is_said(cli, folder, monkeypatch, words, told):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    ran = cli(*words)
    assert ran.code == 2
    assert told in ran.err
    assert not ran.out


def test_check_says_what_contradicts_a_belief_and_what_leaks(cli, folder):
    """What it prints is on docs/how-to/choose-a-belief.md, and compared there."""
    pictures = ("--report", "page.html", "--plot", "fit.svg")
    ran = cli(*CHECK, "--length", "120", *pictures, "--json")
    assert ran.code == 0, ran.err
    document = ran.document
    first = document["verdict"]
    assert first.startswith("It does not fit: ")
    assert not document["fits"]
    told = document["release"]
    assert told["length"] == 120
    assert told["bound"] > 1.2
    assert told["exact"] is None
    assert f"would leak up to {told['bound']:.3g} if" in first
    assert document["candidates"][0]["name"] == "durations"
    rest = document["beliefs"][0]["stays"][0]
    assert rest["mean"] == pytest.approx(30, rel=0.05)
    assert 33 <= rest["most"] <= 35
    assert document["beliefs"][0]["believed_stays"][0]["most"] == 68
    assert "fitted: durations" in (folder / "fit.svg").read_text()
    page = (folder / "page.html").read_text()
    assert page.count("<svg") > 6
    assert "http" not in page.replace("http://www.w3.org", "")


def test_check_takes_several_beliefs_and_phases(cli, folder):
    half = CyclicChain([[[0.9, 0.1], [0.2, 0.8]], [[0.95, 0.05], [0.1, 0.9]]], ["rest", "walk"])
    two = MarkovChain([[0.95, 0.05], [0.1, 0.9]], states=["rest", "walk"])
    (folder / "set.json").write_text(beliefs_to_json([two, half]))
    coins = two.sample(2000, seed=1)
    (folder / "plain.csv").write_text("\n".join(["state", *coins]))
    ran = cli(*CHECK[:3], "set.json", "--against", "plain.csv")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("It fits; ")
    assert "belief 2" in ran.out
    assert "of 2,000 time points" in ran.out


def test_check_refuses_beliefs_about_other_things(cli, folder):
    (folder / "numbers.json").write_text(GaussianSeries(ar=[0.5]).to_json())
    ran = cli(*CHECK[:3], "numbers.json", *CHECK[4:])
    assert ran.code == 2
    assert "GaussianSeries is not about sequences of states" in ran.err


def test_check_names_the_place_of_a_state_that_the_belief_lacks(cli, folder):
    text = (folder / "public.csv").read_text().replace("walk", "zq7canary", 1)
    (folder / "public.csv").write_text(text)
    ran = cli(*CHECK)
    assert ran.code == 2
    assert "holds none of the states 'rest', 'walk'" in ran.err
    assert "canary" not in ran.err
