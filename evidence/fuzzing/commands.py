"""Command lines: ordinary ones with one or two words exchanged, or options added to them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import click
import numpy as np

from evidence.fuzzing.values import NUMBER_TEXTS, TEXTS
from evidence.fuzzing.workspace import copied, damage, hostile_paths
from quiltwork.cli.boundary import run
from quiltwork.cli.root_command import app

ORDINARY = (
    "belief make --states rest,walk,run --lasting 9min,4,2 --every 1min --to run=walk:3,rest "
    "--sure 0.1 -o made.json --plot noise.svg",
    "belief check --belief chain.json --against series.csv --value state",
    "belief check --belief chain.json --belief box.json --against series.csv --value state "
    "--time when --date-format seconds --subject who --every 20min --missing public --length 9 "
    "--epsilon 0.5 --report page.html --plot fit.svg",
    "belief turn chain.json --begins 08:00 --begins 2026-03-01T20:00 -o turned.json",
    "fit series.csv --value state",
    "fit series.csv --value heat --edges 2,4 --labels a,b,c --time when --subject who "
    "--date-format seconds --every 20min --missing public -o fitted.json",
    "fit series.csv --value state --box --confidence 0.9 --states rest,walk",
    "calibrate --belief chain.json --length 20 --epsilon 1",
    "calibrate --belief chain.json --belief box.json --length 9 --epsilon 1 "
    "--query count:walk --window 2:8 --compare",
    "release series.csv --value state --belief chain.json --epsilon 1 --polish",
    "release series.csv --value on --belief numbered.json --query mean:0:1 --epsilon 1 --preview",
    "release series.csv --value state --belief chain.json --query count:walk --window 2:9 "
    "--secrets 1:20 --epsilon 1 --ledger sqlite:///budget.db --dataset d --key q -o answer.json",
    "release series.csv --value state --subject who --states rest,walk,run --protect person "
    "--query top:2 --epsilon 1 --report page.html",
    "monitor --belief chain.json --epsilon 0.1 --length 9 --under 1 --report page.html -o m.json",
    "audit release.json --belief chain.json",
    "audit --belief chain.json --length 9 --query count:walk --scale 2 --secrets 1:5",
    "audit sqlite:///budget.db --dataset d",
    "ledger register sqlite:///budget.db d series.csv --value state",
    "ledger allot sqlite:///budget.db d ana --cap 0.5 --reserved 0.2",
    "ledger create sqlite:///budget.db new --belief chain.json --length 20 --budget 1",
    "ledger create sqlite:///budget.db persons --people --budget 1",
    "ledger export sqlite:///budget.db --output copy.jsonl --checkpoint point.json",
    "ledger extend sqlite:///budget.db d 30",
    "ledger history sqlite:///budget.db d",
    "ledger notes sqlite:///budget.db",
    "ledger plan sqlite:///budget.db d --ask histogram@5 --ask count:walk@1:10",
    "ledger largest sqlite:///budget.db d --window 1:10 --ask histogram --analyst ana",
    "ledger spend sqlite:///budget.db d --epsilon 0.001 --neighbours add-remove --start 2 --stop 9 "
    "--what report --key one",
    "ledger plan sqlite:///budget.db year --year 2025 --points-per-day 1 "
    "--begins 2025-01-01 --weekly histogram",
    "ledger restore backup.jsonl sqlite:///new.db --checkpoint checkpoint.json --lost d=0.1",
    "ledger export sqlite:///budget.db --output last.jsonl --last",
    "ledger retire sqlite:///budget.db d --reason done",
    "ledger show sqlite:///budget.db d",
    "ledger verify sqlite:///budget.db --checkpoint checkpoint.json",
    "count people.csv --by sex --categories f,m --epsilon 1",
    "count people.csv --by sex,age --categories sex=f,m --categories age=20,21 --where age>=21 "
    "--alpha 0.5 --subject id --max-rows 2",
    "count people.csv --epsilon 1 --adjacency replace --total 6 --belief homes.json",
    "count people.csv --epsilon 1 --ledger sqlite:///budget.db --dataset people --key c",
    "count --value 3 --n 9 --epsilon 1 --confidence 0.9",
    "remap --n 9 --epsilon 1 --prior binomial:0.1 --value 3 --value 0",
    "remap released.csv --column count --n 9 --alpha 1/2 --prior poisson:3 --loss power:3/2 "
    "--output read.csv",
    "remap counts.json --n 9 --prior uniform --output read.csv",
    "remap --n 2 --alpha 1/2 --prior prior.csv --loss asymmetric:3:1 --value 1",
    "holdout ask study --predictions guesses.csv",
    "holdout ask study --share age>=30 --label old",
    "holdout create other --train train.csv --holdout held.csv --id id --target label --group home "
    "--threshold 0.2 --noise 0.01 --budget 2 --queries 5",
    "holdout plan --queries 100 --overfits 5 --tolerance 0.1",
    "holdout plan --queries 100 --overfits 5 --samples 100000 --cluster-size 4",
    "leaderboard certify race --key key.pem --output other.json",
    "leaderboard verify certificate.json --log race/board.jsonl",
    "leaderboard create board --labels held.csv --id id --target label --submissions 9 --class no "
    "--class yes --announcements 3 --final 1/3",
    "leaderboard choose race 1 --team us",
    "leaderboard finish race --output final.csv --report final.html",
    "leaderboard create board --labels held.csv --id id --target age --group home --submissions 9 "
    "--metric neg_root_mean_squared_error --limits 0:100 --mode one-bit --confidence 0.9 --steps 4",
    "leaderboard create board --labels held.csv --id id --target label --submissions 9 --metric f1 "
    "--positive yes --floor 0.3 --variance 2 --class no --class yes",
    "leaderboard submit race entry.json --team us --wait 0 --key k",
    "leaderboard standings race",
    "leaderboard export race --output standings.csv",
    "leaderboard finish bits",
    "holdout ask study --predictions guesses.csv --where age>=30",
    "mcp --url ftp://nowhere",
    "holdout status study --queries 9",
    "holdout transcript study",
    "check P1.csv P2.csv --text zip --na=-9 --rename AGE=age --in P1.csv:na=x",
    "verify table.csv --provider hospital --quasi age,zip --sensitive disease --k 3 --m 1",
    "verify table.csv --provider hospital --quasi age,zip --sensitive disease --l 2",
    "verify published.csv --quasi age,zip --sensitive disease --k 3 --own P1.csv",
    "hierarchy P1.csv P2.csv --column age --intervals 5,10 --origin 0 -o ages.csv",
    "hierarchy P1.csv --column zip --prefixes 3,1 -o zips.csv",
    "compare P1.csv P2.csv --quasi age,zip --sensitive disease --k 2,3 --m 0,1 --plot points.svg",
    "verify published.csv --originals P1.csv P2.csv --quasi age,zip --sensitive disease --k 2",
    "joint P1.csv --boxes P1.csv --quasi age,zip --sensitive disease --k 2 --l 2 --as P1 "
    "--providers P1,P2,P3 --salt chain.json --folder .",
    "anonymize P1.csv P2.csv --quasi age,zip --sensitive disease --k 2 --m 1 --output out.csv",
    "risk published.csv --quasi age,zip --sensitive disease",
    "risk published.csv --quasi age,zip --sensitive disease --against published.csv",
    "demo --output header.csv",
    "serve --data header.csv",
    "rotate-key --data header.csv",
    "ask steps --curator https://curator.example.org --epsilon 1",
)
"""One of each kind; those that take long, `_LONG`, with what they refuse."""

_FOREIGN = {"--debug", "--help", "--open", "--full", "--backend"}
_LONG = {
    "mcp",
    "demo",
    "serve",
    "rotate-key",
}  # words are added to what they refuse
_FAULTS = ("Unexpected", "a fault in quiltwork", "Traceback")


def commands() -> list[tuple[str, ...]]:
    """The words of every command that there is."""
    return [words for words, _ in _walk(app, ())]


def _walk(
    command: click.Command, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None:
            yield from _walk(inner, (*words, name))


_COMMANDS = dict(_walk(app, ()))


def altered(line: str, rng: np.random.Generator) -> list[str]:
    """Exchange one or two words of a line for hostile ones, or add an option."""
    words = line.split()
    command = next(name for name in _COMMANDS if tuple(words[: len(name)]) == name)
    fixed = len(command)
    for _ in range(int(rng.integers(1, 3))):
        places = [at for at in range(fixed, len(words)) if not words[at].startswith("--")]
        if command[0] in _LONG:
            words.append(_word("", rng))
        elif places and rng.random() < 0.6:
            at = places[int(rng.integers(len(places)))]
            words[at] = _word(words[at], rng)
        else:
            words += _option(_COMMANDS[command], rng)
    return words


def _option(command: click.Command, rng: np.random.Generator) -> list[str]:
    options = [
        o for o in command.params if isinstance(o, click.Option) and o.opts[0] not in _FOREIGN
    ]
    option = options[int(rng.integers(len(options)))]
    if option.is_flag:
        return [option.opts[0]]
    if isinstance(option.type, click.Choice) and rng.random() < 0.7:
        return [option.opts[0], str(rng.choice(list(option.type.choices)))]
    return [option.opts[0], _word("1" if option.type is click.INT else "", rng)]


def _word(instead_of: str, rng: np.random.Generator) -> str:
    """A hostile word, most often of the kind that stood there."""
    pools = (NUMBER_TEXTS, TEXTS, hostile_paths())
    kind = 0 if instead_of[:1].isdigit() else 2 if "." in instead_of else 1
    pool = pools[kind] if rng.random() < 0.6 else pools[int(rng.integers(3))]
    return pool[int(rng.integers(len(pool)))]


def trouble(words: list[str], template: Path, rng: np.random.Generator) -> str:
    """Run a command line in a fresh folder, one file of which may be damaged; "" if it is fine."""
    with copied(template, template.with_name("work")) as folder:
        if rng.random() < 0.4:
            found = sorted(p for p in folder.rglob("*") if _ordinary(p) and _named(p, words))
            if found:
                damage(found[int(rng.integers(len(found)))], rng)
        return judged(words)


def _named(path: Path, words: list[str]) -> bool:
    """Whether a command line speaks of a file, or of the folder it is in."""
    return any(
        name in word for word in words for name in (path.name, "study") if name in path.parts
    )


def _ordinary(path: Path) -> bool:
    kept = (".json", ".jsonl", ".csv", ".db")
    small = path.suffix in kept and path.is_file() and 0 < path.stat().st_size < 50_000
    return small and path.name not in hostile_paths()


def judged(words: list[str]) -> str:
    """Run a command line in this process and say what is wrong with how it ended."""
    out, err = StringIO(), StringIO()
    before, sys.stdin = sys.stdin, TextIOWrapper(BytesIO(b"state\nrest\nwalk\n"))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = run(words)
    except SystemExit as leaving:
        return f"it left with {leaving.code!r}"
    finally:
        sys.stdin = before
    said = out.getvalue() + err.getvalue()
    if code not in (0, 1, 2, 3):
        return f"exit code {code}: {said[-300:]}"
    if any(word in err.getvalue() for word in _FAULTS):
        return said[-500:]
    if code == 0 and "--json" in words:
        return _unread(out.getvalue())
    return ""


def _unread(text: str) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        return f"not one JSON document: {error}"
    return ""
