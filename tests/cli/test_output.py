from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading

from quiltwork.cli import output
from quiltwork.cli.output import emit, progress, text_table


def test_emit_prints_the_document_only_under_json(cli, probe):
    def show() -> None:
        """Show."""
        emit('{"a": 1}', ["one", "two"])

    probe(show)
    assert cli("probe").out == "one\ntwo\n"
    assert cli("probe", "--json").out == '{"a": 1}\n'


def test_progress_is_silent_without_a_terminal(cli, probe):
    seen = []

    def work() -> None:
        """Work."""
        with progress([1, 2, 3], "Working") as bar:
            seen.extend(bar)
        with progress(10, "Drawing") as bar:
            bar.update(10)

    probe(work)
    ran = cli("probe")
    assert (ran.out, ran.err, seen) == ("", "", [1, 2, 3])


def on_terminal(*arguments: str) -> tuple[bytes, bytes]:
    """Run a command with stderr on a pseudo-terminal; return (stdout, what the terminal got)."""
    outer, inner = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "quiltwork", *arguments],
        stdout=subprocess.PIPE,
        stderr=inner,
        env={**os.environ, "TERM": "xterm"},
        check=True,
    )
    os.close(inner)
    seen = b""
    try:
        while part := os.read(outer, 4096):
            seen += part
    except OSError:  # the other end is closed: everything was read
        pass
    os.close(outer)
    return done.stdout, seen


def test_progress_draws_on_a_terminal_but_never_under_json():
    work = ("remap", "--n", "5", "--alpha", "1/2", "--value", "2")
    out, seen = on_terminal(*work)
    assert b"Remapping" in seen
    assert b"Remapping" not in out
    assert on_terminal(*work, "--json")[1] == b""


def test_long_work_says_so_in_lines_where_there_is_no_terminal(cli, probe, monkeypatch):
    monkeypatch.setattr(output, "_FIRST_LOG_LINE", 0.02)

    def work() -> None:
        """Work."""
        with progress([1], "Reading") as bar:
            for _ in bar:
                threading.Event().wait(0.3)
        emit("{}", ["done"])

    probe(work)
    ran = cli("probe")
    lines = ran.err.splitlines()
    assert 1 <= len(lines) <= 3, "ever more rarely"
    assert all(line.startswith("Working, ") for line in lines)
    assert ran.out == "done\n"
    assert cli("probe", "--json").err == ""


def test_a_table_for_the_terminal_aligns():
    lines = text_table(["mode", "count", "interval"], [["walk", 7, "[1, 13]"], ["bus", 120, ""]])
    assert [line.rstrip() for line in lines] == [
        "mode  count  interval",
        "walk      7   [1, 13]",
        "bus     120",
    ]
    assert text_table(["a"], []) == ["a"]
    assert text_table(["a", "b"], [["4 levels", "1e-9"], ["10", ""]]) == [
        "a            b",
        "4 levels  1e-9",
        "10",
    ]
