"""Certificates: what they prove is checked in fractions, and less noise is refused."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from evidence.checks import certificates as evidence
from quiltwork import calibrate, queries
from quiltwork.audit import certificate_checker as checker
from quiltwork.audit import check_certificate
from quiltwork.audit.certificate_claims import is_about
from quiltwork.beliefs import ChainBox, HiddenChain, MarkovChain
from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from quiltwork.influence.certificate_writer import certificate

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
HIDDEN = HiddenChain([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5], [0.3, 0.0, 0.7]], ["up", "down", "down"])


def less_noise(text: str, factor: Fraction = Fraction(99, 100)) -> str:
    document = json.loads(text)
    for one in document["certificates"]:
        one["scale"] = str(Fraction(one["scale"]) * factor)
    return json.dumps(document)


def test_random_calibrations_are_proved_and_a_percent_less_noise_is_not():
    found = evidence.check(range(40))
    assert found["proved"] >= 20
    assert found["refused at 99 % of the scale"] == found["proved"]
    assert found["of which no other proof exists, either"] >= 10


@pytest.mark.parametrize("length", [2, 7, 100, 10_080])
@pytest.mark.parametrize("belief", [CHAIN, HIDDEN], ids=["states", "hidden states"])
def test_the_examples_of_the_docs_are_proved(belief, length):
    found = calibrate(belief, length, 1)
    text = certificate(found)
    [claim] = check_certificate(text)
    assert Fraction(claim["scale"]) == found.exact_scale
    assert is_about(claim, belief)
    with pytest.raises(NotPrivateError, match="does not hold"):
        check_certificate(less_noise(text))


@pytest.mark.parametrize(
    ("query", "episode"),
    [(queries.histogram(), 1), (queries.transitions(), 1), (queries.count(1), 3)],
)
def test_queries_and_episodes_are_charged_what_they_move(query, episode):
    found = calibrate(CHAIN, 30, 1, query=query, episode=episode)
    text = certificate(found)
    check_certificate(text)
    with pytest.raises(NotPrivateError):
        check_certificate(less_noise(text))


def test_every_belief_of_a_set_is_proved():
    other = MarkovChain([[0.7, 0.3], [0.2, 0.8]])
    claims = check_certificate(certificate(calibrate([CHAIN, other], 50, 1)))
    assert [is_about(one, CHAIN) for one in claims] == [True, False]
    assert [is_about(one, other) for one in claims] == [False, True]


def _changed(document, path, value):
    *way, last = path
    for step in way:
        document = document[step]
    document[last] = value


def test_whatever_number_is_changed_for_the_worse_the_proof_fails():
    text = certificate(calibrate(CHAIN, 8, 1))
    one = json.loads(text)["certificates"][0]
    tried = 0
    for side, j, x in product(("left", "right"), range(2, 8), range(2)):
        bound = one[side]["bounds"][j][x][1 - x]
        worse = json.loads(text)
        lower = str(Fraction(bound) * (1 - Fraction(1, 10**6)))
        _changed(worse["certificates"][0], (side, "bounds", j, x, 1 - x), lower)
        with pytest.raises(NotPrivateError):
            check_certificate(json.dumps(worse))
        tried += 1
    assert tried == 24
    for path, value in (
        (("epsilon",), "99/100"),
        (("transition", 0, 0), "19/20"),
        (("transition", 0), ["19/20", "1/20"]),
        (("charges", 0, 3), 2),
        (("length",), 9),
        (("episode",), 2),
        (("shows",), [0, 0, 0]),
        (("left", "endless"), True),
        (("right", "steps", 3, 0, 1, 1), []),
        (("right", "steps", 3, 0, 1, 1, 0), [1, 1, "1"]),
        (("right", "steps", 3, 0, 1, 1, 0, 2), "-1"),
        (("right", "steps", 3, 0, 1, 1, 0, 2), "1e999999999"),
        (("flows", 3, 0, 1), []),
        (("flows", 3, 0, 1, 0, 2), "2"),
        (("right", "steps", 3, 0, 1, 0), 0),
        (("right", "steps", 3, 0, 1), None),
        (("left", "bounds", 4, 0, 1), None),
        (("scale",), "nan"),
        (("secrets",), [0, 8]),
        (("initial",), ["1", "0"]),
        (("initial",), "stationary"),
    ):
        worse = json.loads(text)
        _changed(worse["certificates"][0], path, value)
        with pytest.raises(NotPrivateError):
            check_certificate(json.dumps(worse))


def test_what_no_certificate_is_about_is_said():
    box = ChainBox([[0.8, 0.1], [0.3, 0.5]], [[0.9, 0.2], [0.5, 0.7]])
    for calibration in (
        calibrate(box, 50, 1),
        calibrate(CHAIN, 50, 1, method="exact"),
        calibrate(MarkovChain(CHAIN.transition, "any"), 50, 1),
    ):
        with pytest.raises(UnsupportedError, match="Certificates are"):
            certificate(calibration)
    with pytest.raises(InvalidInputError):
        check_certificate("{}")
    for nothing in ([], [{}], {}, [7]):
        empty = {"schema": "quiltwork/certificate", "version": 1, "certificates": nothing}
        with pytest.raises(NotPrivateError):
            check_certificate(json.dumps(empty))


def test_a_flow_proves_no_less_than_the_optimum():
    """Against the vertices of the program for two states: v is (1, limit) or (limit, 1)."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        p, q, up = ([Fraction(int(n), 7) for n in rng.integers(1, 30, 2)] for _ in range(3))
        limits = {(0, 1): 1 + up[0], (1, 0): 1 + up[1]}
        vertices = [[limits[0, 1], Fraction(1)], [Fraction(1), limits[1, 0]]]
        optimum, best = max((checker.times(p, v) / checker.times(q, v), v) for v in vertices)
        z = vertices.index(best)
        weight = p[z] - optimum * q[z]
        assert checker.proved(p, q, optimum, limits, [[z, 1 - z, str(weight)]])
        for change in (Fraction(0), Fraction(1, 100), Fraction(1)):
            flow = [[z, 1 - z, str(weight + change)]]
            assert not checker.proved(p, q, optimum * Fraction(999, 1000), limits, flow)


def test_the_exponential_is_enclosed():
    """Against enclosures by rational series with far more terms."""
    for value in (Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)):
        term = total = Fraction(1)
        for n in range(1, 400):
            term = term * value / n
            total += term
        low, high = checker.exp_down(value), checker.exp_up(value)
        assert low < total < high < low * (1 + Fraction(1, 2**80))
    assert checker.exp_up(Fraction(0)) == checker.exp_down(Fraction(0)) == 1


def test_rounding_goes_the_way_that_it_says():
    rng = np.random.default_rng(5)
    for _ in range(500):
        top, bottom = (int(rng.integers(1, 2**62)) ** int(rng.integers(1, 9)) for _ in range(2))
        value = Fraction(top, bottom)
        low, high = checker.down(value), checker.up(value)
        assert low <= value <= high <= low * (1 + Fraction(1, 2**93))


def test_the_checker_is_alone(tmp_path):
    """It imports the standard library only, uses no float, and runs as a file of its own."""
    source = Path(checker.__file__).read_text(encoding="utf-8")
    tree = ast.parse(source)
    names = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
        )
    }
    assert names == {
        "__future__",
        "json",
        "sys",
        "fractions",
        "functools",
        "typing",
        "itertools",
        "collections.abc",
    }
    assert not any(
        isinstance(node, ast.Constant) and isinstance(node.value, float) for node in ast.walk(tree)
    )
    assert "float(" not in source
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    text = certificate(calibrate(CHAIN, 100, 1))
    good.write_text(text)
    bad.write_text(less_noise(text))
    for path, code in ((good, 0), (bad, 1)):
        command = [sys.executable, "-I", checker.__file__, str(path)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran.stdout + ran.stderr
