"""The first hour with a file of one's own: from the file to a report in three commands at most."""

import csv
import html
import json
import re
import shlex
import shutil
from collections import Counter
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import pytest

from quiltwork.cli.boundary import run

HERE = Path(__file__).parent
STORIES = sorted(path.parent.name for path in HERE.glob("*/story.sh"))


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Run a story's commands once, on copies of its files; return what each of them printed."""

    @cache
    def tell(name):
        folder = tmp_path_factory.mktemp("story") / name
        shutil.copytree(HERE / name, folder)
        lines = (folder / "story.sh").read_text(encoding="utf-8").splitlines()
        with chdir(folder):
            return folder, [ran(line) for line in lines if not line.startswith("#")]

    return tell


def ran(line):
    program, *words = shlex.split(line)
    assert program == "quiltwork"
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = run(words)
    return words, code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("name", STORIES)
def test_three_commands_lead_from_the_file_to_a_report(told, name):
    folder, done = told(name)
    assert len(done) <= 3
    refusals = [place for place, (_, code, *_) in enumerate(done) if code]
    assert len(refusals) <= 1
    for place in refusals:
        named = set(re.findall(r"--[\w-]+", done[place][3]))
        added = {word for word in done[place + 1][0] if word.startswith("--")}
        assert named & (added - set(done[place][0])), done[place][3]
    assert done[-1][1] == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    for text in [*(one[2] + one[3] for one in done), page]:
        assert "Traceback" not in text


def rows_of(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_orders_of_one_customer_count_three_times_at_most(told):
    folder, done = told("orders")
    seen, truth = Counter(), Counter()
    for row in rows_of(folder / "orders.csv"):
        seen[row["customer"]] += 1
        if seen[row["customer"]] <= 3:
            truth[row["product"]] += 1
    assert max(seen.values()) > 40
    found = re.findall(r"^(\D.*?)\s+(\d+)\s+\[(\d+), (\d+)\]", done[-1][2], flags=re.M)
    assert {name for name, *_ in found} == set(truth)
    for name, count, low, high in found:
        assert int(low) <= int(count) <= int(high)
        assert abs(int(count) - truth[name]) < 60  # twenty scales
    assert "at most 3 times" in done[-1][2]


def test_the_minutes_that_the_tracker_lost_are_not_counted(told):
    folder, done = told("tracker")
    shown = Counter(row["Activity"] for row in rows_of(folder / "export.csv"))
    del shown[""]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"of 6 sequences, {shown.total():,} of them recorded" in page
    assert "have no record" in page
    assert re.search(r"^(Useful|Rough|Useless): ", done[-1][2], flags=re.M)


@pytest.mark.parametrize("name", ["meters", "tracker"])
def test_gaps_are_public_or_a_state_of_their_own(told, name):
    """The same file with both claims: a hidden state that lasts takes more noise than it tells."""
    folder, done = told(name)
    made, *_, asked = (line for line in (folder / "story.sh").read_text("utf-8").splitlines()
                       if line.startswith("quiltwork"))  # fmt: skip
    lasting = re.search(r"--lasting (\S+)", made)[1]
    states = re.search(r"--states (\S+)", made)[1]
    made = made.replace(states, f"{states},missing").replace(lasting, f"{lasting},2h")
    found = {}
    for missing in ("state", "public"):
        line = asked.replace("--missing public", f"--missing {missing}")
        line = line.replace("--report report.html", "--json")
        with chdir(folder):
            if missing == "state":
                assert ran(made.replace("-o belief.json", "-o both.json"))[1] == 0
                line = line.replace("--belief belief.json", "--belief both.json")
            _, code, out, err = ran(line)
        assert code == 0, err
        found[missing] = json.loads(out)
    assert found["state"]["points"] == found["public"]["points"] + found["public"]["gaps"]
    assert found["public"]["gaps"] > 0
    assert "gaps" not in found["state"]
    assert found["public"]["scale"] < found["state"]["scale"]
    assert "says nothing about its states" in done[0][3] + done[-2][3] + done[-1][3]


def test_postal_codes_keep_their_zeros(told):
    folder, _ = told("hospital")
    codes = {row["zip"] for row in rows_of(folder / "patients.csv")}
    for row in rows_of(folder / "published.csv"):
        for code in re.findall(r"\d+", row["zip"]):
            assert code in codes


def test_the_page_of_a_holdout_shows_every_answer(told):
    folder, done = told("predictions")
    page = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    (answer,) = re.findall(r"first model: ([\d.]+)", done[1][2])
    assert "Predict every id of train.csv and of held.csv" in done[0][2]
    assert "1. first model" in page
    assert answer[:5] in page
    *_, document, _ = ran(f"quiltwork holdout transcript {folder / 'study'} --json")
    assert json.loads(document)["transcript"]
