"""Whatever goes wrong is one line on stderr and the exit code of the contract."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

from quiltwork import errors


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (errors.InvalidInputError("n is 0; give at least 1."), 2, "invalid-input"),
        (errors.BudgetExceeded("0.5 is left, 1 was asked."), 1, "budget-exceeded"),
        (errors.NotPrivateError("no noise."), 1, "not-private"),
        (errors.UnsupportedError("no proof."), 2, "unsupported"),
        (errors.StorageError("disk full."), 3, "storage"),
        (PermissionError(13, "Permission denied", "/x/y"), 3, "storage"),
        (OSError(28, "No space left on device"), 3, "storage"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_is_one_line_and_a_code(cli, probe, error, code, kind):
    def fail() -> None:
        """Fail."""
        raise error

    probe(fail)
    plain = cli("probe")
    assert plain.code == code
    assert plain.out == ""
    assert plain.err.startswith("Error: ")
    assert plain.err.count("\n") == 1
    told = cli("probe", "--json")
    assert told.code == code
    document = json.loads(told.err)
    assert document["error"]["kind"] == kind
    assert document["schema"] == "quiltwork/error"


def test_every_error_class_has_a_code_of_the_contract():
    family = errors.QuiltworkError.__subclasses__()
    assert family
    assert {cls.exit_code for cls in [errors.QuiltworkError, *family]} <= {1, 2, 3}


def test_an_unexpected_error_shows_a_traceback_only_with_debug(cli, probe):
    def fail() -> None:
        """Fail."""
        raise ZeroDivisionError("two\nlines")

    probe(fail)
    plain = cli("probe")
    assert plain.code == 3
    assert plain.err.count("\n") == 1
    assert "--debug" in plain.err
    assert "Traceback" in cli("probe", "--debug").err


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["count", "--nonsense"], ["demo", "extra"], ["demo", "--output"], ["count"]],
)
def test_misuse_is_code_2_and_points_to_help(cli, arguments):
    ran = cli(*arguments)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "--help" in ran.err
    told = cli(arguments[0], "--json", *arguments[1:]).err
    assert json.loads(told)["error"]["kind"] == "usage"


def test_json_after_a_bare_dash_dash_is_an_argument(cli):
    assert cli("demo", "--", "--json").err.startswith("Error: ")


def test_own_warnings_are_one_line_and_others_are_left_alone(cli, probe):
    def warn() -> None:
        """Warn."""
        warnings.warn("the fit\nleaks", errors.QuiltworkWarning, stacklevel=1)

    probe(warn)
    assert cli("probe").err == "Warning: the fit leaks\n"
    document = json.loads(cli("probe", "--json").err)
    assert document["warning"]["message"] == "the fit leaks"


def test_the_exit_code_a_command_chooses_is_kept(cli, probe):
    import click

    def refuse() -> None:
        """Refuse."""
        click.get_current_context().exit(1)

    probe(refuse)
    assert cli("probe").code == 1


def test_a_reader_that_went_away_is_no_traceback():
    script = "import sys; from quiltwork.cli import main; main(['--help'])"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == b""


def test_ctrl_c_is_130_without_a_traceback(tmp_path):
    fifo = tmp_path / "rows.csv"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [sys.executable, "-m", "quiltwork", "count", str(fifo), "--epsilon", "1"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with fifo.open("w"):  # returns once the command waits for rows
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert (out, err) == (b"", b"Error: Interrupted.\n")


def test_a_terminal_without_greek_letters_is_no_failure(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("sex\nε\n", encoding="utf-8")
    command = [sys.executable, "-m", "quiltwork", "count", str(path), "--by", "sex"]
    done = subprocess.run(
        [*command, "--categories", "ε", "--epsilon", "1"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith(b"? ")


def test_a_folder_that_cannot_be_written_is_a_storage_error(cli, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    ran = cli("demo", "--output", str(tmp_path / "taken" / "tour"))
    assert ran.code == 3
    assert ran.err.startswith("Error: ")
    assert ran.err.count("\n") == 1


HOSTILE_FILES = [
    ("risk loop --quasi age --sensitive ill", "loop"),
    ("remap loop --column a --n 9 --alpha 1/2 --output read.csv", "loop"),
    ("calibrate --belief deep.json --length 9 --epsilon 1", "Not a JSON document"),
    ("remap --n 2 --alpha 1/2 --prior deep.json --value 1", "Not a JSON document"),
    ("ledger restore /dev/full sqlite:///new.db", "is a device"),
    ("count \udcff.csv --epsilon 1", "No such file"),
    ("demo --output full/inside", "full"),
]


@pytest.mark.parametrize(("line", "words"), HOSTILE_FILES, ids=range(len(HOSTILE_FILES)))
def test_hostile_files_get_a_sentence(cli, tmp_path, monkeypatch, line, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    (tmp_path / "full").write_text("no folder")
    ran = cli(*line.split())
    assert ran.code in (2, 3)
    assert words in ran.err
    assert "fault" not in ran.err
