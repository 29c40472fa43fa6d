"""The table of the dashboard's pages by address, and the routes for sign-in and assets."""

from __future__ import annotations

import secrets
from typing import Any

from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from quiltwork.service.dashboard import sessions
from quiltwork.service.dashboard.pages import board_pages as boards
from quiltwork.service.dashboard.pages import dataset_pages as datasets
from quiltwork.service.dashboard.pages import member_pages as members
from quiltwork.service.dashboard.pages import question_pages as questions
from quiltwork.service.dashboard.pages import table_pages as tables
from quiltwork.service.dashboard.rendering import HEADERS, assets, render
from quiltwork.service.dashboard.web import (
    Page,
    PageAdapter,
    PageRequest,
    PageView,
    download,
    form_action,
    hidden_field,
    own_form,
    refusal_response,
)
from quiltwork.service.pipeline import Endpoint, Metrics, endpoint
from quiltwork.service.problems import Problem, not_found
from quiltwork.service.routes import Feature, Service

FEATURE = Feature(sessions.SCHEMA)
_MAX_SIGN_IN = 10_000
"""Bytes of a form that is accepted before sign-in."""

_DATASET, _TABLE = "/datasets/{dataset}", "/tables/{table}"
_BOARD = "/leaderboards/{holdout}"
_RELEASE = "/datasets/{result.dataset}/releases/{result.number}"


def _form(
    page_path: str,
    suffix: str,
    work: Any,
    flash: str,
    *page: Any,
    to: str | None = None,
    **options: Any,
) -> tuple[str, str, Page]:
    """Return the entry of a form, which then leads back to its page or to `to`."""
    target = page_path if to is None else to
    return "POST", f"{page_path}{suffix}", form_action(work, target, flash, *page, **options)


_PAGES: tuple[tuple[str, str, Page], ...] = (
    ("GET", "/", datasets.overview),
    ("GET", "/new", datasets.new),
    _form(
        "/new",
        "",
        datasets.register,
        "registered",
        datasets.new,
        to="/datasets/{result.name}",
    ),
    ("GET", "/datasets/{dataset}", datasets.dataset),
    _form(_DATASET, "/rows", "add_rows", "added", datasets.dataset, file="rows"),
    _form(
        *(_DATASET, "/access", "share_dataset", "shared", datasets.dataset),
        path="member",
        body=("cap", "reserved"),
    ),
    _form(_DATASET, "/access/{member}/remove", "unshare_dataset", "shared", datasets.dataset),
    _form(_DATASET, "/retire", "retire_dataset", "retired", datasets.dataset, body=("reason",)),
    _form(_DATASET, "/delete", "delete_rows", "deleted", datasets.dataset, confirm="dataset"),
    ("GET", "/datasets/{dataset}/releases/{release}", datasets.release),
    ("GET", "/datasets/{dataset}/ask", questions.ask),
    ("POST", "/datasets/{dataset}/ask/preview", questions.ask),
    _form(_DATASET, "/ask", questions.answer, "asked", questions.ask, to=_RELEASE),
    ("GET", "/members", members.members),
    ("POST", "/members", members.invite),
    ("GET", "/members/{member}", members.member),
    _form("/members/{member}", "/remove", "remove_member", "removed", to="/members"),
    ("POST", "/members/{member}/tokens", members.issue),
    _form("/members/{member}", "/tokens/{token}/revoke", "revoke_token", "revoked"),
    ("GET", "/tables", tables.tables),
    _form("/tables", "", tables.make, "created", tables.tables, to="/tables/{result.name}"),
    ("GET", "/tables/{table}", tables.table),
    _form(_TABLE, "/access", "admit_to_table", "shared", tables.table, path="member"),
    _form(_TABLE, "/access/{member}/remove", "dismiss_from_table", "shared", tables.table),
    _form(_TABLE, "/rows", "give_rows", "submitted", tables.table, file="rows"),
    _form(_TABLE, "/publish", "publish_table", "queued", tables.table),
    ("GET", "/tables/{table}/published.csv", download("show_publication")),
    ("GET", "/leaderboards", boards.boards),
    _form(
        *("/leaderboards", "", boards.register, "created", boards.boards),
        to="/leaderboards/{result.name}",
    ),
    ("GET", "/leaderboards/{holdout}", boards.board),
    _form(_BOARD, "/tables", boards.give, "created", boards.board),
    _form(_BOARD, "/delete", "delete_tables", "deleted", boards.board, confirm="holdout"),
    _form(_BOARD, "/access", "admit_to_holdout", "shared", boards.board, path="member"),
    _form(_BOARD, "/access/{member}/remove", "dismiss_from_holdout", "shared", boards.board),
    _form(_BOARD, "/ask", boards.ask, "scored", boards.board),
    _form(_BOARD, "/choice", boards.choose, "named", boards.board),
    _form(_BOARD, "/end", "finish_holdout", "ended", boards.board),
    ("GET", "/leaderboards/{holdout}/ranking.csv", download("show_ranking_file")),
    ("GET", "/leaderboards/{holdout}/scores.csv", download("show_score_file")),
    ("GET", "/jobs", tables.jobs),
    _form("/jobs/{job}", "/cancel", "cancel_job", "cancelled", to="/jobs"),
    ("GET", "/log", members.log),
    ("POST", "/log", members.verify),
)


def routes(service: Service, metrics: Metrics) -> tuple[BaseRoute, ...]:
    """Return the routes for browsers, outside the API."""

    def page_endpoint(path: str, page: Page) -> Endpoint:
        return endpoint(service, PageAdapter(service, path, page), metrics)

    return (
        Route("/assets/{name}", _asset),
        Route("/sign-in", _sign_in, methods=["GET", "POST"]),
        Route("/sign-out", _sign_out, methods=["POST"]),
        *(Route(path, page_endpoint(path, page), methods=[verb]) for verb, path, page in _PAGES),
        _UnknownPage("/{rest:path}", page_endpoint("elsewhere", _not_found)),
    )


class _UnknownPage(Route):
    """Any other address that a browser requests, so that it gets a page; the API answers itself."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match requests for HTML outside the API."""
        if scope["type"] != "http" or scope["path"].startswith("/v1"):
            return Match.NONE, {}
        accepts = Headers(scope=scope).get("accept", "")
        return super().matches(scope) if "text/html" in accepts else (Match.NONE, {})


def _not_found(_: PageRequest) -> PageView:
    raise not_found()


async def _asset(request: Request) -> Response:
    asset = assets().get(request.path_params["name"])
    if asset is None:
        return Response(status_code=404, headers=HEADERS)
    # The address holds the content's version, so browsers may cache it for ever.
    caching = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(asset.content, headers=HEADERS | caching, media_type=asset.media_type)


async def _sign_in(request: Request) -> Response:
    service: Any = request.app.state.service
    pre_session, wrong = sessions.cookie_of(request, sessions.PRE_SESSION), False
    if request.method == "POST":
        try:
            form, _ = await own_form(request, pre_session, _MAX_SIGN_IN)
        except Problem as problem:
            return refusal_response(request, problem)
        cookie = await run_sync(sessions.begin, service, form.get("token", "").strip())
        if cookie is not None:
            redirect = RedirectResponse("/", 303, headers=HEADERS)
            sessions.set_cookie(request, redirect, cookie)
            return redirect
        wrong = True
    pre_session = pre_session or secrets.token_hex(32)
    values = {
        "heading": "Sign in",
        "who": None,
        "flash": None,
        "wrong": wrong,
        "csrf": hidden_field(pre_session),
    }
    page = HTMLResponse(render("sign_in.html", values), 401 if wrong else 200, headers=HEADERS)
    sessions.set_cookie(request, page, pre_session, sessions.PRE_SESSION)
    return page


async def _sign_out(request: Request) -> Response:
    cookie = sessions.cookie_of(request)
    try:
        await own_form(request, cookie, _MAX_SIGN_IN)
    except Problem as problem:
        return refusal_response(request, problem)
    await run_sync(sessions.end, request.app.state.service, cookie)
    redirect = RedirectResponse("/sign-in", 303, headers=HEADERS)
    sessions.set_cookie(request, redirect, "")
    return redirect
