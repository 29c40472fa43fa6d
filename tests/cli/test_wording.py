"""What a sentence calls an argument: its name in Python, its option where a command is typed."""

from __future__ import annotations

import threading

import click
import pytest

import quiltwork as qw
from quiltwork.cli.option_names import OptionNames
from quiltwork.errors import InvalidInputError
from quiltwork.wording import argument, either, speaking


@click.command("try")
@click.option("--protect")
@click.option("--states")
@click.option("--beginning", is_flag=True)
@click.option("--na", "na_values")
@click.option("-o", "--output")
def tried(**_):
    """A command."""


def as_typed(say, server=""):
    with speaking(OptionNames({server})), click.Context(tried, info_name="try"):
        return say()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("episode", 18), "--protect 18"),
        (("episode",), "--protect"),
        (("states", ["a", "b"]), "--states a,b"),
        (("beginning_of", 30), "--beginning"),
        (("output", "x"), "--output x"),
        (("na_values",), "--na"),
        (("within", 3), "within=3"),
    ],
)
def test_an_argument_is_the_option_of_the_command_that_has_one(asked, said):
    assert as_typed(lambda: argument(*asked)) == said
    assert as_typed(lambda: either("called", "typed")) == "typed"


def test_python_is_spoken_in_python_in_servers_and_in_other_threads():
    assert argument("episode", 18) == "episode=18"
    assert as_typed(lambda: argument("episode", 18), "try") == "episode=18"
    assert as_typed(lambda: either("called", "typed"), "try") == "called"
    said = []

    def aside():
        thread = threading.Thread(target=lambda: said.append(argument("episode", 18)))
        thread.start()
        thread.join()

    as_typed(aside)
    assert said == ["episode=18"]


def test_the_same_refusal_names_the_argument_and_the_option(cli, tmp_path):
    chain = qw.MarkovChain([[0.5, 0.5]] * 2, states=["a", "b"])
    (tmp_path / "b.json").write_text(chain.to_json())
    with pytest.raises(InvalidInputError, match=r"^length must be at least 1, not 0"):
        qw.calibrate(chain, length=0, epsilon=1)
    ran = cli("calibrate", "--belief", str(tmp_path / "b.json"), "--length", "0", "--epsilon", "1")
    assert "Error: --length must be at least 1, not 0" in ran.err
    assert (
        "Error: --epsilon must be greater than 0"
        in cli(
            *("calibrate", "--belief", str(tmp_path / "b.json"), "--length", "5", "--epsilon", "-1")
        ).err
    )
