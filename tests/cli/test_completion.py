from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_says_how_to_install_it(cli, shell):
    ran = cli("completion", shell)
    assert ran.out.startswith("# To install: ")
    assert "_QUILTWORK_COMPLETE" in ran.out
    assert cli("completion", shell, "--json").document["shell"] == shell


def test_bash_accepts_the_script(cli, tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash on this machine")
    script = tmp_path / "completion.bash"
    script.write_text(cli("completion", "bash").out, encoding="utf-8")
    subprocess.run([bash, "-n", str(script)], check=True)


def test_commands_and_options_are_completed():
    def complete(words: str, word: int) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", "from quiltwork.cli import main; main()"],
            env={
                **os.environ,
                "_QUILTWORK_COMPLETE": "bash_complete",
                "COMP_WORDS": words,
                "COMP_CWORD": str(word),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.split(",")[1] for line in done.stdout.splitlines()]

    assert complete("quiltwork co", 1) == ["count", "compare", "completion"]
    assert "--epsilon" in complete("quiltwork count --", 2)
