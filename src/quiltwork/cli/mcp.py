"""`quiltwork mcp`: serve a leaderboard to agents, by the Model Context Protocol and plain HTTP.

The tools describe the task, list row ids, take a submission at once or in parts, name one for the
final ranking, and show the standings. Labels are read by this process only, which must run as
another user than the agents. Agents whose client speaks MCP over stdin and stdout use a bridge: a
second process of their own user that holds no labels and forwards to the first.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from http.client import HTTPException
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
from quiltwork.exact import shortened

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

_LARGEST = 64 << 20
"""Maximum size of a submission, in bytes."""
_TIMEOUT = 120
_JSON, _CSV = "application/json", "text/csv"
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")
"""A host name or an address, perhaps with a port."""
_FAILED = "Internal error. The owner of the board finds the cause in the server's log."
_TASK = "The task: the metric and how it is scored, the number of rows, the accuracy guarantee."
_IDS = "Every row id to predict, sorted; a long list if there are many rows."
_SUBMIT = (
    "Submit one prediction for every row id. A refused submission is not counted; a scored one is, "
    "whether it changes the standings or not. A repetition returns the stored answer."
)
_PREDICTIONS = {
    "type": "object",
    "title": "Predictions",
    "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "number"}]},
}
"""JSON schema of the argument. It is validated here, not by pydantic, whose errors are long."""
_ADD = (
    "Send a part of a submission, such as 1,000 rows; it is not counted yet. Repeated ids replace "
    "earlier ones. Finish with submit and the remaining rows, or {}."
)
_FILE = "Submit a local file: CSV, Parquet or JSON, with the id column and 'prediction'."
_CHOOSE = "Name your submission, by its number, for the final ranking; the latest choice counts."
_LEFT = "The submissions left, the standings so far, and the final ranking."
_PROGRESS = ("submitted", "left", "announcements_left", "places", "ended", "named", "ranking")
"""The fields of a board's state that change."""


@command(
    example="""
    quiltwork mcp race --port 8765
    quiltwork mcp --url http://127.0.0.1:8765
    """
)
def mcp(
    folder: str | None = argument(),
    about: str = option(
        "More instructions for agents, such as where the features are.", "TEXT", default=""
    ),
    team: str = option("The team name of all submissions.", default="agent"),
    host: str = option("The address to listen at.", default="127.0.0.1"),
    port: int = option("The port to listen at.", default=8765),
    url: str | None = option("Forward stdin and stdout to this server instead.", "URL"),
) -> None:
    """Serve a leaderboard to agents.

    With FOLDER: MCP at /mcp, and plain HTTP at /task, /ids, /add, /submit, /choose and /left. Run
    it as a user whose files and processes the agents cannot read. With --url: an MCP server on
    standard input and output for the agent's own user, which holds no labels.
    """
    if (folder is None) == (url is None):
        raise click.UsageError("Give either the FOLDER of a leaderboard or the --url of its server")
    if url is not None:
        bridge(url).run("stdio")
        return
    import uvicorn

    application = agents_app(str(folder), team, host, about)
    address = f"[{host}]" if ":" in host else host
    click.echo(f"Serving {folder} at http://{address}:{port} (MCP at /mcp)", err=True)
    uvicorn.run(application, host=host, port=port, log_level="warning", access_log=False)


def board_tools(
    folder: str, team: str, about: str = ""
) -> dict[str, Callable[..., dict[str, Any]]]:
    """Return the tools over a folder, as functions from JSON values to JSON values.

    Errors in a submission are found before the board is asked and explained to the agent. Later
    errors concern the owner's files, so their details go to the owner's log only. Parts of a
    submission wait in memory until it is submitted.

    Raises:
        InvalidInputError: if other users may read the labels or the secret, or write the board.
    """
    from quiltwork.holdout.folders import board_of
    from quiltwork.holdout.prediction_tables import check_predictions, predictions_by_id

    _check_separated(folder)
    from quiltwork.holdout.metrics import plain_label

    board = board_of(folder)
    metric, ids = board.metric(), board.ids
    known_ids, parts, lock = frozenset(map(plain_label, ids)), {}, Lock()
    scoring = board.begun.about.scorings[0].body()

    def task() -> dict[str, Any]:
        with _errors_to_owner():
            status = board_of(folder).standings()
        fixed = {name: value for name, value in status.body().items() if name not in _PROGRESS}
        return {**fixed, "scoring": scoring, "about": about, "how": status.explain()}

    def add(predictions: dict[str, Any]) -> dict[str, Any]:
        part = predictions_by_id(predictions, "predictions")
        unknown = len(part.keys() - known_ids)
        if unknown:
            raise InvalidInputError(f"{unknown:,} of the predictions have an unknown id.")
        check_predictions(part, metric)
        with lock:
            parts.update(part)
            return {"waiting": len(parts), "missing": len(known_ids) - len(parts)}

    def submit(predictions: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        with lock:
            whole = {**parts, **predictions_by_id(predictions, "predictions")}
            board.check(whole)
            with _errors_to_owner():
                _check_separated(folder)  # again: file modes may have changed since the start
                verdict = board_of(folder).submit(team, whole, key)
            parts.clear()
        return {**verdict.body(), "told": verdict.explain()}

    def choose(number: Any) -> dict[str, Any]:
        with _errors_to_owner():
            transcript = board_of(folder).transcript
        if transcript.about.final is None:
            raise InvalidInputError("This board has no final ranking, so nothing can be named.")
        own = [entry.number for entry in transcript.entries if entry.label == team]
        if type(number) is not int or number not in own:
            raise InvalidInputError(
                f"You have no submission {shortened(number)}; `left` shows how many there are."
            )
        with _errors_to_owner():
            status = board_of(folder).choose(team, number)
        return {"named": dict(status.named)}

    def left() -> dict[str, Any]:
        with _errors_to_owner():
            body = board_of(folder).standings().body()
        return {name: body[name] for name in ("submissions", *_PROGRESS)}

    return {
        "task": task,
        "ids": lambda: {"ids": ids},
        "add": add,
        "submit": submit,
        "choose": choose,
        "left": left,
    }


def _check_separated(folder: str) -> None:
    """Refuse files that other users may read or write, which would defeat the separation."""
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
                f"{str(path)!r} may be {may} by other users, so agents could bypass the board. "
                f"Make it private (chmod {right}), and run the agents as another user."
            )


@contextmanager
def _errors_to_owner() -> Iterator[None]:
    """Log errors for the owner; agents see only that the request failed."""
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
        server.custom_route(f"/{path}", ["POST"])(
            _over_http(tools[path], _PredictionsBody(identity))
        )
    server.custom_route("/choose", ["POST"])(_over_http(tools["choose"], _number))
    application = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=_LARGEST,
        # `_guarded` checks Host and Origin, for plain HTTP as well.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    logging.getLogger("mcp.server.streamable_http").addFilter(_is_no_hang_up)
    application.add_middleware(_guarded, names={host.lower(), "localhost"})
    return application


def _is_no_hang_up(record: logging.LogRecord) -> bool:
    """Whether a log record is about anything but a client that disconnected."""
    from starlette.requests import ClientDisconnect

    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


def _guarded(app: ASGIApp, names: Set[str]) -> ASGIApp:
    """Refuse requests that a page in somebody's browser sends (cross-site requests, DNS rebinding).

    The Host header must be an address or one of `names`, and Origin, if present, this server's own.
    """
    from starlette.datastructures import Headers
    from starlette.responses import JSONResponse

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            hosts, origins = headers.getlist("host"), headers.getlist("origin")
            problem = None
            if len(hosts) != 1 or not _is_own(hosts[0], names):
                problem = (
                    "The Host header must be the server's address, or the name given by --host."
                )
            elif origins not in ([], [f"{scope['scheme']}://{hosts[0]}"]):
                problem = "Pages of other origins may not send requests here."
            if problem is not None:
                await JSONResponse({"error": problem}, 403)(scope, receive, send)
                return
        await app(scope, receive, send)

    return respond


def _is_own(host: str, names: Set[str]) -> bool:
    """Whether a Host header is a numeric address or one of the server's names."""
    match = _HOST.fullmatch(host.lower())
    try:
        name = "" if match is None else match[1] or match[2]
        return name in names or bool(ip_address(name))
    except ValueError:
        return False


def _over_http(
    tool: Callable[..., dict[str, Any]], read: Callable[[bytes, str], Any] | None = None
) -> Callable[[Request], Any]:
    """Return the HTTP handler of a tool; `read` parses its argument from the body."""
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

    async def respond(sent: Request) -> Response:
        body = bytearray()
        kind = sent.headers.get("content-type", "").partition(";")[0].strip().lower()
        if read is not None:
            if kind not in (_JSON, _CSV):  # cross-site pages need a preflight request to send these
                return JSONResponse(
                    {"error": f"Set Content-Type to {_JSON}, or to {_CSV} for a file."}, 415
                )
            try:
                async for part in sent.stream():
                    body += part
                    if len(body) > _LARGEST:
                        return JSONResponse(
                            {"error": f"The submission is larger than {_LARGEST:,} bytes."}, 413
                        )
            except ClientDisconnect:
                return JSONResponse({"error": "The request body ended too early."}, 400)
        return JSONResponse(*await to_thread.run_sync(answer, bytes(body), kind))

    return respond


class _PredictionsBody:
    """Parser of a request body: a JSON object, or a CSV table with the id column."""

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
                    message = str(problem).replace(repr(file.name), "the file")
                    raise InvalidInputError(message) from None
        from quiltwork import files

        document = files.parse(body)
        predictions = document.get("predictions") if isinstance(document, dict) else None
        if not isinstance(predictions, dict):
            raise InvalidInputError('Submit {"predictions": {"row id": prediction, ...}}.')
        return predictions


def _number(body: bytes, kind: str) -> Any:
    """Parse the body {"number": …}; the tool validates the number."""
    from quiltwork import files

    document = files.parse(body) if kind == _JSON else None
    if not isinstance(document, dict) or "number" not in document:
        raise InvalidInputError('Send {"number": 3}, with the number of your submission.')
    return document["number"]


def bridge(url: str) -> MCPServer[Any]:
    """Return an MCP server that forwards its tools to a leaderboard's URL, and submits files."""
    if not url.startswith(("http://", "https://")):
        raise InvalidInputError(f"--url is an address such as http://127.0.0.1:8765, not {url!r}.")

    def call(path: str, *arguments: Any) -> dict[str, Any]:
        data = None
        if arguments:
            data = json.dumps(
                {"number" if path == "choose" else "predictions": arguments[0]}
            ).encode()
        sent = request.Request(f"{url.rstrip('/')}/{path}", data, {"Content-Type": _JSON})  # noqa: S310  (checked above)
        try:
            with request.urlopen(sent, timeout=_TIMEOUT) as answer:  # noqa: S310
                return dict(json.load(answer))
        except error.HTTPError as refusal:
            message = _error_message(refusal)
            if message is None:
                raise InvalidInputError(f"{url} is not a leaderboard ({refusal}).") from None
            raise InvalidInputError(message) from None
        except (OSError, ValueError, HTTPException) as problem:
            raise InvalidInputError(f"{url} does not answer ({problem}).") from None

    def submit_file(path: str) -> dict[str, Any]:
        from quiltwork.holdout.prediction_tables import read_predictions

        return call("submit", read_predictions(path, str(call("task")["identity"])))

    server = _server()
    _offer(server, call)

    def submit_local_file(path: str) -> dict[str, Any]:
        return _one_line(submit_file, path)

    server.tool(name="submit_file", description=_FILE)(submit_local_file)
    return server


def _error_message(refusal: error.HTTPError) -> str | None:
    """Return the error in a leaderboard's answer; None if another server answered."""
    try:
        body = json.load(refusal)
    except (OSError, ValueError):
        return None
    message = body.get("error") if isinstance(body, dict) else None
    return message if isinstance(message, str) else None


def _server() -> MCPServer[Any]:
    try:
        from mcp.server import MCPServer
    except ImportError:
        raise UnsupportedError(
            "Serving agents needs the mcp package: pip install 'quiltwork[mcp]'."
        ) from None
    return MCPServer("quiltwork leaderboard", log_level="WARNING")


def _one_line(call: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Call a tool; every error is one line, however long the input."""
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        return call(*arguments)
    except QuiltworkError as problem:
        raise ToolError(str(problem)) from None
    except Exception:
        raise ToolError(_FAILED) from None


def _offer(server: MCPServer[Any], call: Callable[..., dict[str, Any]]) -> None:
    """Register the tools with the server, which runs each call in a thread."""
    from pydantic import WithJsonSchema

    def task() -> dict[str, Any]:
        return _one_line(call, "task")

    def ids() -> dict[str, Any]:
        return _one_line(call, "ids")

    def add(predictions: Any = None) -> dict[str, Any]:
        return _one_line(call, "add", predictions)

    def submit(predictions: Any = None) -> dict[str, Any]:
        return _one_line(call, "submit", predictions)

    def choose(number: Any = None) -> dict[str, Any]:
        return _one_line(call, "choose", number)

    def left() -> dict[str, Any]:
        return _one_line(call, "left")

    for tool in (add, submit):
        tool.__annotations__["predictions"] = Annotated[Any, WithJsonSchema(_PREDICTIONS)]
    choose.__annotations__["number"] = Annotated[Any, WithJsonSchema({"type": "integer"})]
    offered: tuple[tuple[Callable[..., dict[str, Any]], str], ...] = (
        (task, _TASK),
        (ids, _IDS),
        (add, _ADD),
        (submit, _SUBMIT),
        (choose, _CHOOSE),
        (left, _LEFT),
    )
    for tool, description in offered:
        server.tool(description=description)(tool)
