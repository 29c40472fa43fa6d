"""`quiltwork mcp`: a leaderboard for agents, by the Model Context Protocol and plain HTTP.

Tools: what is asked for, of which rows, submit, at once or in parts, name a submission for the end,
what is left. The labels are read by this
process only, which must run as another user than the agents do. Agents that speak over standard
input and output get a bridge, a second process of their own user that holds no label and forwards
to the first.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any
from urllib import error, request

import click

from quiltwork.cli.command import argument, command, option
from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    QuiltworkError,
    StorageError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

_LARGEST = 64 << 20
"""Bytes of a submission."""
_PATIENCE = 120
_JSON, _CSV = "application/json", "text/csv"
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")
"""A name or an address, and perhaps a port; what is said twice or goes on is no such."""
_FAILED = "The board failed, and tells nothing; its owner finds the reason where it runs."
_ASKED = "What is asked for: the metric and how it is scored, how many rows, the promise."
_IDS = "Every row id that must be predicted, sorted; long where there are many rows."
_SUBMIT = (
    "Submit one prediction for every row id. What is refused, with a sentence, is not counted; "
    "what is scored counts, whether it moves the board or not."
)
_PREDICTIONS = {
    "type": "object",
    "title": "Predictions",
    "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "number"}]},
}
"""What agents are told of the argument; what is wrong with it is said in one line, not for each."""
_ADD = (
    "Send a part of a submission, such as 1,000 rows; nothing is counted. Later parts replace "
    "earlier ones. Then call submit with the rest, or with {}."
)
_FILE = "Submit a file of yours: CSV, Parquet or JSON, with the id column and 'prediction'."
_CHOOSE = "Name the submission, by its number, that is scored at the end; the last word counts."
_LEFT = "What is left: submissions, the standings so far, and how it ended."
_PROGRESS = ("submitted", "left", "announcements_left", "places", "ended", "named", "ranking")
"""What of a board changes."""


@command(
    example="""
    quiltwork mcp race --port 8765
    quiltwork mcp --url http://127.0.0.1:8765
    """
)
def mcp(
    folder: str | None = argument(),
    about: str = option(
        "What agents are told besides: classes, where features are.", "TEXT", default=""
    ),
    team: str = option("Whose submissions these are.", default="agent"),
    host: str = option("Where to listen.", default="127.0.0.1"),
    port: int = option("On which port.", default=8765),
    url: str | None = option("Forward to this server instead, over stdin and stdout.", "URL"),
) -> None:
    """Serve a leaderboard to agents.

    With FOLDER: MCP at /mcp, and plain HTTP at /task, /ids, /add, /submit, /choose and /left. Run
    it as a user whose files and processes the agents cannot read. With --url: an MCP server on
    standard input and output for an agent's own user, which holds nothing.
    """
    if (folder is None) == (url is None):
        raise click.UsageError("Give the FOLDER of a leaderboard, or --url of who serves one")
    if url is not None:
        bridge(url).run("stdio")
        return
    import uvicorn

    made = agents_app(str(folder), team, host, about)
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"Serving {folder} at http://{shown}:{port} (MCP at /mcp)", err=True)
    uvicorn.run(made, host=host, port=port, log_level="warning", access_log=False)


def board_tools(
    folder: str, team: str, about: str = ""
) -> dict[str, Callable[..., dict[str, Any]]]:
    """Return the tools over a folder, as functions from JSON values to JSON values.

    What is wrong with a submission is told before the board is asked; what goes wrong from then on
    is about files that are none of the agents' business, and told to the owner alone. Parts of a
    submission wait in memory until it is handed in.

    Raises:
        InvalidInputError: if others may read the labels or the secret, or write the board, which
            would make the boundary a picture.
    """
    from quiltwork.holdout.folders import board_of
    from quiltwork.holdout.prediction_tables import check_predictions, predictions_by_id

    _check_separated(folder)
    begun = board_of(folder)
    metric, rows = begun.metric(), begun.ids
    from quiltwork.holdout.metrics import plain_label

    known, parts, turn = frozenset(map(plain_label, rows)), {}, Lock()
    scoring = begun.begun.about.scorings[0].body()

    def task() -> dict[str, Any]:
        with _told_to_owner():
            found = board_of(folder).standings()
        told = {name: value for name, value in found.body().items() if name not in _PROGRESS}
        return {**told, "scoring": scoring, "about": about, "how": found.explain()}

    def add(predictions: dict[str, Any]) -> dict[str, Any]:
        said = predictions_by_id(predictions, "predictions")
        unknown = len(said.keys() - known)
        if unknown:
            raise InvalidInputError(f"{unknown:,} of the predictions are for ids that no row has.")
        check_predictions(said, metric)
        with turn:
            parts.update(said)
            return {"waiting": len(parts), "missing": len(known) - len(parts)}

    def hand_in(predictions: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        with turn:
            said = {**parts, **predictions_by_id(predictions, "predictions")}
            begun.check(said)
            with _told_to_owner():
                _check_separated(folder)
                found = board_of(folder).submit(team, said, key)
            parts.clear()
        return {**found.body(), "told": found.explain()}

    def choose(number: int) -> dict[str, Any]:
        with _told_to_owner():
            told = board_of(folder).transcript
        if told.about.final is None:
            raise InvalidInputError("This board keeps no rows apart, so nothing is named.")
        if number not in [one.number for one in told.entries if one.label == team]:
            raise InvalidInputError("There is no such submission of yours; `left` counts them.")
        with _told_to_owner():
            found = board_of(folder).choose(team, number)
        return {"named": dict(found.named)}

    def left() -> dict[str, Any]:
        with _told_to_owner():
            found = board_of(folder).standings().body()
        return {name: found[name] for name in ("submissions", *_PROGRESS)}

    return {
        "task": task,
        "ids": lambda: {"ids": rows},
        "add": add,
        "submit": hand_in,
        "choose": choose,
        "left": left,
    }


def _check_separated(folder: str) -> None:
    from quiltwork.holdout import folders
    from quiltwork.holdout.sealed_log import secret_path

    labels, board = Path(folders.load(folder).holdout), folders.board_path(folder)
    others = {labels: 0o077, secret_path(board): 0o077, board: 0o022, Path(folder): 0o022}
    for path, forbidden in others.items():
        try:
            mode = path.stat().st_mode
        except OSError as problem:
            raise InvalidInputError(f"Cannot read {str(path)!r}: {problem.strerror}.") from None
        if mode & forbidden:
            may, right = ("read", "600") if forbidden == 0o077 else ("written", "go-w")
            raise InvalidInputError(
                f"{str(path)!r} may be {may} by others, so agents would not need to climb. Make it "
                f"yours only (chmod {right}), and run the agents as another user."
            )


@contextmanager
def _told_to_owner() -> Iterator[None]:
    try:
        yield
    except BudgetExceeded:
        raise
    except Exception as problem:
        click.echo(f"A request failed: {type(problem).__name__}: {problem}", err=True)
        raise StorageError(_FAILED) from None


def agents_app(folder: str, team: str, host: str, about: str = "") -> Starlette:
    """Return the web application: MCP at /mcp, plain HTTP beside it."""
    server = _server()
    tools = board_tools(folder, team, about)
    _offer(server, lambda name, *given: tools[name](*given))
    from mcp.server.transport_security import TransportSecuritySettings

    identity = tools["task"]()["identity"]
    for path in ("task", "ids", "left"):
        server.custom_route(f"/{path}", ["GET"])(_over_http(tools[path]))
    for path in ("add", "submit"):
        server.custom_route(f"/{path}", ["POST"])(_over_http(tools[path], _Sent(identity)))
    server.custom_route("/choose", ["POST"])(_over_http(tools["choose"], _number))
    made = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=_LARGEST,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    logging.getLogger("mcp.server.streamable_http").addFilter(_is_no_hang_up)
    made.add_middleware(_guarded, names={host.lower(), "localhost"})
    return made


def _is_no_hang_up(record: logging.LogRecord) -> bool:
    """Whether a line of the log is about something else than a client that went away."""
    from starlette.requests import ClientDisconnect

    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


def _guarded(app: ASGIApp, names: Set[str]) -> ASGIApp:
    """Refuse what a page in somebody's browser sends.

    It comes from elsewhere, or asks by a name that was made to point here; an address in numbers
    is no name, so all of the machine's are good.
    """
    from starlette.datastructures import Headers
    from starlette.responses import JSONResponse

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            sent = Headers(scope=scope)
            asked, origin = sent.getlist("host"), sent.getlist("origin")
            problem = None
            if len(asked) != 1 or not _is_own(asked[0], names):
                problem = "Ask by the server's address, or the name that --host gives it."
            elif origin not in ([], [f"{scope['scheme']}://{asked[0]}"]):
                problem = "Pages of other places may not ask here."
            if problem is not None:
                await JSONResponse({"error": problem}, 403)(scope, receive, send)
                return
        await app(scope, receive, send)

    return respond


def _is_own(asked: str, names: Set[str]) -> bool:
    found = _HOST.fullmatch(asked.lower())
    try:
        name = "" if found is None else found[1] or found[2]
        return name in names or bool(ip_address(name))
    except ValueError:
        return False


def _over_http(
    tool: Callable[..., dict[str, Any]], read: Callable[[bytes, str], Any] | None = None
) -> Callable[[Request], Any]:
    """Return the handler of a tool; `read` makes its argument of a body and its type."""
    from anyio import to_thread
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse

    def answer(body: bytes, kind: str) -> tuple[dict[str, Any], int]:
        try:
            return (tool() if read is None else tool(read(body, kind))), 200
        except BudgetExceeded as problem:
            return {"error": str(problem)}, 409
        except QuiltworkError as problem:
            return {"error": str(problem)}, 500 if isinstance(problem, StorageError) else 400
        except Exception:
            return {"error": _FAILED}, 500

    async def respond(asked: Request) -> Response:
        body = bytearray()
        kind = asked.headers.get("content-type", "").partition(";")[0].strip().lower()
        if read is not None:
            if kind not in (_JSON, _CSV):  # which a page can send elsewhere only after asking
                return JSONResponse(
                    {"error": f"Send it with Content-Type: {_JSON}, or a file as {_CSV}."}, 415
                )
            try:
                async for part in asked.stream():
                    body += part
                    if len(body) > _LARGEST:
                        return JSONResponse({"error": "The submission is too large."}, 413)
            except ClientDisconnect:
                return JSONResponse({"error": "The submission ended too early."}, 400)
        return JSONResponse(*await to_thread.run_sync(answer, bytes(body), kind))

    return respond


class _Sent:
    """Reads predictions as they are sent: an object of JSON, or a table with the id column."""

    def __init__(self, identity: str) -> None:
        self.identity = identity

    def __call__(self, body: bytes, kind: str) -> dict[str, Any]:
        """Return predictions by id."""
        if kind == _CSV:
            with NamedTemporaryFile(suffix=".csv") as file:
                file.write(body)
                file.flush()
                try:
                    from quiltwork.holdout.prediction_tables import read_predictions

                    return dict(read_predictions(file.name, self.identity))
                except InvalidInputError as problem:
                    told = str(problem).replace(repr(file.name), "the file")
                    raise InvalidInputError(told) from None
        from quiltwork import files

        document = files.parse(body)
        found = document.get("predictions") if isinstance(document, dict) else None
        if not isinstance(found, dict):
            raise InvalidInputError('Submit {"predictions": {"row id": prediction, ...}}.')
        return found


def _number(body: bytes, kind: str) -> int:
    from quiltwork import files

    document = files.parse(body) if kind == _JSON else None
    found = document.get("number") if isinstance(document, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise InvalidInputError('Send {"number": 3}, the number of a submission of yours.')
    return found


def bridge(url: str) -> MCPServer[Any]:
    """Return an MCP server that forwards its tools to one over HTTP, and reads files to submit."""
    if not url.startswith(("http://", "https://")):
        raise InvalidInputError(f"--url is an address such as http://127.0.0.1:8765, not {url!r}.")

    def call(path: str, *given: Any) -> dict[str, Any]:
        data = None
        if given:
            data = json.dumps({"number" if path == "choose" else "predictions": given[0]}).encode()
        asked = request.Request(f"{url.rstrip('/')}/{path}", data, {"Content-Type": _JSON})  # noqa: S310  (checked above)
        try:
            with request.urlopen(asked, timeout=_PATIENCE) as answer:  # noqa: S310
                return dict(json.load(answer))
        except error.HTTPError as problem:
            told = json.load(problem).get("error", _FAILED)
            raise InvalidInputError(str(told)) from None
        except (OSError, ValueError) as problem:
            raise InvalidInputError(f"{url} does not answer ({problem}).") from None

    def submit_file(path: str) -> dict[str, Any]:
        from quiltwork.holdout.prediction_tables import read_predictions

        return call("submit", read_predictions(path, str(call("task")["identity"])))

    made = _server()
    _offer(made, call)

    def told(path: str) -> dict[str, Any]:
        return _one_line(submit_file, path)

    made.tool(name="submit_file", description=_FILE)(told)
    return made


def _server() -> MCPServer[Any]:
    try:
        from mcp.server import MCPServer
    except ImportError:
        raise UnsupportedError(
            "Serving agents needs the mcp package: pip install 'quiltwork[mcp]'."
        ) from None
    return MCPServer("quiltwork leaderboard", log_level="WARNING")


def _one_line(call: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
    """Call a tool; what is wrong is one line, however long what was sent."""
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        return call(*given)
    except QuiltworkError as problem:
        raise ToolError(str(problem)) from None
    except Exception:
        raise ToolError(_FAILED) from None


def _offer(server: MCPServer[Any], call: Callable[..., dict[str, Any]]) -> None:
    """Offer the tools, each a call by its name; the server runs them in threads."""
    from pydantic import WithJsonSchema

    def task() -> dict[str, Any]:
        return _one_line(call, "task")

    def ids() -> dict[str, Any]:
        return _one_line(call, "ids")

    def add(predictions: Any = None) -> dict[str, Any]:
        return _one_line(call, "add", predictions)

    def submit(predictions: Any = None) -> dict[str, Any]:
        return _one_line(call, "submit", predictions)

    def choose(number: int = 0) -> dict[str, Any]:
        return _one_line(call, "choose", number)

    def left() -> dict[str, Any]:
        return _one_line(call, "left")

    for tool in (add, submit):
        tool.__annotations__["predictions"] = Annotated[Any, WithJsonSchema(_PREDICTIONS)]
    offered: tuple[tuple[Callable[..., dict[str, Any]], str], ...] = (
        (task, _ASKED),
        (ids, _IDS),
        (add, _ADD),
        (submit, _SUBMIT),
        (choose, _CHOOSE),
        (left, _LEFT),
    )
    for one, meaning in offered:
        server.tool(description=meaning)(one)
