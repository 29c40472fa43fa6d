"""An answer that is paid for arrives: bad options are found before, later failures show it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import quiltwork as qw
from quiltwork import files
from quiltwork.series import Release

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_text("s\n" + "rest\nwalk\n" * 25)
    (tmp_path / "belief.json").write_text(CHAIN.to_json())
    ledger = qw.Ledger.open("sqlite:///budget.db")
    ledger.create("s", CHAIN, 50, 10)
    ledger.create("people", qw.Clusters(range(50)), None, 10)
    ledger.close()
    return tmp_path


PAY = ("--ledger", "sqlite:///budget.db", "--dataset")
RELEASE = ("release", "s.csv", "--value", "s", "--belief", "belief.json", "--epsilon", "1")
COUNT = ("count", "s.csv", "--epsilon", "1", "--by", "s", "--categories", "rest,walk")


def debits(dataset):
    with qw.Ledger.open("sqlite:///budget.db") as ledger:
        return len(ledger.history(dataset))


@pytest.mark.parametrize(
    "options",
    [
        ["--polish", "--query", "most-common"],
        ["--plot", "x.foo"],
        ["--plot", "/dev/full"],
        ["--plot", "nodir/x.png"],
        ["-o", "nodir/x.json"],
        ["-o", "/dev/full", "--json"],
        ["-o", "."],
        ["--confidence", "1"],
        ["--plot", "x.png", "--query", "most-common"],
    ],
    ids=" ".join,
)
def test_a_release_that_could_not_be_delivered_costs_nothing(cli, folder, options):
    ran = cli(*RELEASE, *options, *PAY, "s")
    assert ran.code in (2, 3)
    assert ran.out == ""
    assert "fault in quiltwork" not in ran.err
    assert debits("s") == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [*COUNT, "--confidence", "2"],
        ["count", "--value", "5", "--n", "50", "--epsilon", "1", "--confidence", "0"],
        ["count", "--value", "5", "--n", "50", "--epsilon", "1e-20"],
    ],
)
def test_a_count_that_could_not_be_delivered_costs_nothing(cli, folder, arguments):
    ran = cli(*arguments, *PAY, "people")
    assert ran.code == 2
    assert "Fraction(" not in ran.err
    assert debits("people") == 0


def test_a_file_that_fails_after_the_debit_leaves_the_answer_on_stdout(cli, folder, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(files, "write", full)
    ran = cli(*RELEASE, "-o", "x.json", "--plot", "x.png", "--json", *PAY, "s")
    assert ran.code == 3
    assert "No space left" in ran.err
    assert ran.document["schema"] == "quiltwork/release"
    assert debits("s") == 1


def test_an_answer_that_cannot_be_drawn_is_printed(cli, folder, monkeypatch):
    def broken(self, confidence):
        raise RuntimeError("no fonts")

    monkeypatch.setattr(qw.Release, "chart", broken)
    ran = cli(*RELEASE, "--plot", "x.png", "-o", "x.json")
    assert ran.code == 3
    assert "RuntimeError" in ran.err
    assert "95 % interval" in ran.out
    assert (folder / "x.json").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [[*RELEASE, *PAY, "s"], [*COUNT, *PAY, "people"]])
def test_with_stdout_full_the_answer_goes_to_stderr(folder, arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "quiltwork", *arguments],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 3
    assert '"schema": "quiltwork/' in done.stderr.splitlines()[0]


def test_messages_show_numbers_as_they_were_typed(cli, folder):
    for arguments in (
        [*COUNT[:2], "--epsilon", "0"],
        [*COUNT[:2], "--alpha", "3/2"],
        ["count", "--value", "1", "--n", "2", "--alpha", "1.50"],
        ["release", "s.csv", "--value", "s", "--belief", "belief.json", "--epsilon", "-0.10"],
    ):
        ran = cli(*arguments)
        assert ran.code == 2
        assert "Fraction(" not in ran.err
        assert arguments[-1] in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "s.csv", "--value", "s", "--box", "--smoothing", "1"], "--smoothing"),
        (["fit", "s.csv", "--value", "s", "--box", "--initial", "any"], "--initial"),
        (["fit", "s.csv", "--value", "s", "--confidence", "0.9"], "--box"),
        ([*COUNT, "--by", "s"], "twice"),
        (["count", "empty.csv", "--epsilon", "1"], "header"),
        (["release", "s.csv", "--value", "s", "--belief", "belief.json", "--epsilon", "1",
          "--query", "sum:0:1e999"], "1e150"),
        (["remap", "--n", "1000000000", "--epsilon", "1"], "GB"),
        (["remap", "--n", "1000000000", "--epsilon", "1", "--prior", "earlier:5:1"], "GB"),
        (["remap", "--n", "10", "--epsilon", "1", "--loss", "power:1e9"], "smaller exponent"),
    ],
)  # fmt: skip
def test_options_that_would_be_ignored_or_fail_are_refused(cli, folder, arguments, words):
    (folder / "empty.csv").write_text("")
    ran = cli(*arguments)
    assert ran.code == 2, ran.err
    assert words in ran.err


def test_a_released_count_is_remapped_or_refused_whatever_its_size(cli, folder):
    options = ["remap", "--n", "10", "--epsilon", "1", "--json"]
    ran = cli(*options, "--value", "15", "--value", "-5")
    assert {row["released"]: row["remapped"] for row in ran.document["readings"]} == {15: 10, -5: 0}
    huge = "9" * 24
    refused = cli(*options, "--value", huge)
    assert refused.code == 2
    assert f"Released count {huge} is {int(huge) - 10} above n = 10" in refused.err


def test_a_backup_never_takes_the_place_of_a_device(cli, folder):
    os.mkfifo("d")
    ran = cli("ledger", "export", "sqlite:///budget.db", "--output", "d")
    assert ran.code == 2
    assert "Backup in" not in ran.out
    assert (folder / "d").is_fifo()


def test_a_wrong_public_total_is_no_test_of_the_true_one(cli, folder):
    for total in (49, 50, 51):
        ran = cli(*COUNT, "--adjacency", "replace", "--total", str(total), "--json")
        assert ran.code == 0, ran.err
        assert sum(ran.document["table"]["values"]) == total


def test_polished_numbers_are_possible_ones_and_intervals_those_of_the_noise(cli, folder):
    asked = (*RELEASE[:-1], "0.01", "--polish")
    ran = cli(*asked, "--json")
    assert sum(ran.document["value"]) == 50
    assert min(ran.document["value"]) >= 0
    released = Release.from_json(ran.out)
    half = released.law.simultaneous_quantile(0.95, 1)
    assert released.interval().low.tolist() == [count - half for count in released.noisy]
    assert "Post-processed at no cost" in cli(*asked).out
