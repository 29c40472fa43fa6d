"""`quiltwork mcp`: a leaderboard for agents, by the Model Context Protocol and plain HTTP.

Three tools: what is asked for, submit, what is left. The labels are read by this process only,
which must run as another user than the agents do. Agents that speak over standard input and output
get a bridge, a second process of their own user that holds no label and forwards to the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Set
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib import error, request
from urllib.parse import urlsplit

import click

from quiltwork.cli.command import command, option
from quiltwork.errors import BudgetExceeded, InvalidInputError, QuiltworkError, UnsupportedError

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

_LARGEST = 64 << 20
"""Bytes of a submission."""
_PATIENCE = 120
_JSON = "application/json"
_FAILED = "The board failed, and tells nothing; its owner finds the reason where it runs."
_ASKED = "What is asked for: the ids to predict are those of the task, the metric, the promise."
_SUBMIT = "Submit one prediction for every row id; it counts whatever comes of it."
_LEFT = "What is left: submissions, and the standings so far."


@command(
    example="""
    quiltwork mcp race --port 8765
    quiltwork mcp --url http://127.0.0.1:8765
    """
)
@click.argument("folder", required=False)
@option("--team", "Whose submissions these are.", default="agent")
@option("--host", "Where to listen.", default="127.0.0.1")
@option("--port", "On which port.", int, default=8765)
@option("--url URL", "Forward to this server instead, over stdin and stdout.")
def mcp(folder: str | None, team: str, host: str, port: int, url: str | None) -> None:
    """Serve a leaderboard to agents.

    With FOLDER: MCP at /mcp, and plain HTTP at /task, /submit and /left. Run it as a user whose
    files and processes the agents cannot read. With --url: an MCP server on standard input and
    output for an agent's own user, which holds nothing.
    """
    if (folder is None) == (url is None):
        raise click.UsageError("Give the FOLDER of a leaderboard, or --url of who serves one")
    if url is not None:
        bridge(url).run("stdio")
        return
    import uvicorn

    made = agents_app(str(folder), team, host)
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"Serving {folder} at http://{shown}:{port} (MCP at /mcp)", err=True)
    uvicorn.run(made, host=host, port=port, log_level="warning", access_log=False)


def board_tools(folder: str, team: str) -> dict[str, Callable[..., dict[str, Any]]]:
    """Return the three tools over a folder, as functions from JSON values to JSON values.

    Raises:
        InvalidInputError: if others may read the labels, which would make the boundary a picture.
    """
    from quiltwork.holdout import folders
    from quiltwork.holdout.leaderboard import submit_predictions
    from quiltwork.holdout.standings import read_leaderboard
    from quiltwork.holdout.studies import predictions_from_pairs

    _check_separated(folders.load(folder).holdout)
    read_leaderboard(folder)

    def task() -> dict[str, Any]:
        found = read_leaderboard(folder)
        told = {k: v for k, v in found.body().items() if k not in ("places", "submitted", "left")}
        return {**told, "how": found.explain()}

    def hand_in(predictions: dict[str, Any]) -> dict[str, Any]:
        said = predictions_from_pairs(predictions.items(), "predictions")
        found = submit_predictions(folder, team, said)
        return {**found.body(), "told": found.explain()}

    def left() -> dict[str, Any]:
        found = read_leaderboard(folder).body()
        return {name: found[name] for name in ("left", "submitted", "submissions", "places")}

    return {"task": task, "submit": hand_in, "left": left}


def _check_separated(labels: str) -> None:
    from pathlib import Path

    try:
        mode = Path(labels).stat().st_mode
    except OSError as problem:
        raise InvalidInputError(f"Cannot read {labels!r}: {problem.strerror}.") from None
    if mode & 0o077:
        raise InvalidInputError(
            f"{labels!r} may be read by others, so agents would not need to climb. Make it yours "
            "only (chmod 600), and run the agents as another user."
        )


def agents_app(folder: str, team: str, host: str) -> Starlette:
    """Return the web application: MCP at /mcp, plain HTTP beside it."""
    server = _server()
    tools = board_tools(folder, team)
    _offer(server, tools)
    from mcp.server.transport_security import TransportSecuritySettings

    for path, method in (("task", "GET"), ("left", "GET"), ("submit", "POST")):
        server.custom_route(f"/{path}", [method])(_over_http(tools[path]))
    made = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=_LARGEST,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    made.add_middleware(_guarded, names={host.lower(), "localhost"})
    return made


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
    try:
        name = urlsplit(f"//{asked}").hostname or ""
        return name in names or bool(ip_address(name))
    except ValueError:
        return False


def _over_http(tool: Callable[..., dict[str, Any]]) -> Callable[[Request], Any]:
    from anyio import to_thread
    from starlette.responses import JSONResponse

    def answer(body: bytes) -> tuple[dict[str, Any], int]:
        try:
            return (tool(_predictions(body)) if body else tool()), 200
        except BudgetExceeded as problem:
            return {"error": str(problem)}, 409
        except QuiltworkError as problem:
            return {"error": str(problem)}, 400
        except Exception:
            return {"error": _FAILED}, 500

    async def respond(asked: Request) -> Response:
        body = b""
        if asked.method == "POST":
            kind = asked.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != _JSON:  # which a page can send elsewhere only after asking
                return JSONResponse({"error": f"Send it with Content-Type: {_JSON}."}, 415)
            async for part in asked.stream():
                body += part
                if len(body) > _LARGEST:
                    return JSONResponse({"error": "The submission is too large."}, 413)
            body = body or b"null"
        return JSONResponse(*await to_thread.run_sync(answer, body))

    return respond


def _predictions(body: bytes) -> dict[str, Any]:
    from quiltwork import files

    document = files.parse(body)
    found = document.get("predictions") if isinstance(document, dict) else None
    if not isinstance(found, dict):
        raise InvalidInputError('Submit {"predictions": {"row id": prediction, ...}}.')
    return found


def bridge(url: str) -> MCPServer[Any]:
    """Return an MCP server that forwards its three tools to one over HTTP."""
    if not url.startswith(("http://", "https://")):
        raise InvalidInputError(f"--url is an address such as http://127.0.0.1:8765, not {url!r}.")

    def call(path: str, predictions: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if predictions is None else json.dumps({"predictions": predictions}).encode()
        asked = request.Request(f"{url.rstrip('/')}/{path}", data, {"Content-Type": _JSON})  # noqa: S310  (checked above)
        try:
            with request.urlopen(asked, timeout=_PATIENCE) as answer:  # noqa: S310
                return dict(json.load(answer))
        except error.HTTPError as problem:
            told = json.load(problem).get("error", _FAILED)
            raise InvalidInputError(str(told)) from None
        except (OSError, ValueError) as problem:
            raise InvalidInputError(f"{url} does not answer ({problem}).") from None

    made = _server()
    tools: dict[str, Callable[..., dict[str, Any]]] = {
        "task": lambda: call("task"),
        "submit": lambda predictions: call("submit", predictions),
        "left": lambda: call("left"),
    }
    _offer(made, tools)
    return made


def _server() -> MCPServer[Any]:
    try:
        from mcp.server import MCPServer
    except ImportError:
        raise UnsupportedError(
            "Serving agents needs the mcp package: pip install 'quiltwork[mcp]'."
        ) from None
    return MCPServer("quiltwork leaderboard", log_level="WARNING")


def _offer(server: MCPServer[Any], tools: dict[str, Callable[..., dict[str, Any]]]) -> None:
    from anyio import to_thread
    from mcp.server.mcpserver.exceptions import ToolError

    async def told(name: str, *given: Any) -> dict[str, Any]:
        try:
            return await to_thread.run_sync(tools[name], *given)
        except QuiltworkError as problem:
            raise ToolError(str(problem)) from None
        except Exception:
            raise ToolError(_FAILED) from None

    async def task() -> dict[str, Any]:
        return await told("task")

    async def submit(predictions: dict[str, str | float]) -> dict[str, Any]:
        return await told("submit", predictions)

    async def left() -> dict[str, Any]:
        return await told("left")

    for tool, meaning in ((task, _ASKED), (submit, _SUBMIT), (left, _LEFT)):
        server.tool(description=meaning)(tool)
