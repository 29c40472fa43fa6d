"""From a browser's request to a page: session, form, right, template, headers.

A page is an ordinary function from a `PageRequest` to a `PageView` or a response. It asks the
curator by the names of the API's routes (`PageRequest.ask`), through the same table of rights, so
that no page shows or does what the API would refuse.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from anyio.to_thread import run_sync
from markupsafe import Markup
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from quiltwork.errors import QuiltworkError
from quiltwork.service.dashboard import sessions
from quiltwork.service.dashboard.rendering import HEADERS, render
from quiltwork.service.hosts import PROXY_USER
from quiltwork.service.pipeline import Work
from quiltwork.service.problems import Problem, problem_of, problem_response
from quiltwork.service.request_limits import limited_body, media_type_of
from quiltwork.service.rights import Caller, scope
from quiltwork.service.routes import Service
from quiltwork.service.uploads import MEDIA_TYPES

_FORM_FIELD = "form"
_FILES = "multipart/form-data"
_PIECE = 1 << 20
_SIGN_IN = "Sign in to see pages; the API takes a token."
_MOST_FIELDS = 500
_MOST_FILES = 4
_MENU = (
    ("Overview", "/", "dataset.list"),
    ("Tables", "/tables", "table.list"),
    ("Leaderboards", "/leaderboards", "holdout.list"),
    ("Jobs", "/jobs", "job.list"),
    ("Members", "/members", "member.list"),
    ("Audit log", "/log", "log.read"),
)
FLASH = {
    "asked": "The answer is below. What it cost has been taken from the budget.",
    "registered": "The dataset is registered. Nothing has been spent yet.",
    "added": "The rows have arrived.",
    "shared": "Access was changed.",
    "retired": "The dataset is retired: nothing more is granted, the ledger stays.",
    "deleted": "The rows are deleted. The ledger and the log stay.",
    "revoked": "The token is revoked, at once.",
    "removed": "The member is removed, with all tokens.",
    "cancelled": "It is cancelled.",
    "submitted": "Your rows have arrived; only you can replace or delete them.",
    "created": "It is made.",
    "queued": "It is queued, and published by a process of its own.",
    "scored": "Your predictions were scored.",
    "named": "The submission is named for the end; until then you may name another.",
    "ended": "The competition has ended.",
}
"""What a page says after something was done, by the word in its address."""


@dataclass(frozen=True)
class PageRequest:
    """One request of somebody who has signed in.

    `here` is the path of the page, `files` what was chosen to be uploaded, by the name of its
    field; `fragment` asks for the part that changes only, `address` is the curator's, as the
    browser names it.
    """

    service: Service
    caller: Caller
    here: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, UploadFile] = field(default_factory=dict)
    cookie: str = ""
    fragment: bool = False
    address: str = ""

    def may(self, action: str) -> bool:
        """Whether the caller may do something at all."""
        return scope(self.caller, action) is not None

    def must(self, action: str) -> None:
        """Refuse a page that only serves an action to those who may not do it."""
        if not self.may(action):
            raise Problem(403, "forbidden", f"Your role or your token does not allow {action}.")

    def ask(
        self,
        name: str,
        path: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> Any:
        """Do what a route of the API does, as the caller, and return its struct."""
        return self.service.ask(self.caller, name, path, body, **rest)

    def send(self, name: str, path: Mapping[str, str], field: str, **rest: Any) -> Any:
        """Do what a route that takes an upload does, with the file that was chosen in a field."""
        chosen = self.files.get(field)
        suffix = Path(chosen.filename or "").suffix.lower() if chosen else ""
        if chosen is None or suffix not in MEDIA_TYPES.values():
            raise Problem(422, "invalid-input", "Choose a file that ends with .csv or .parquet.")
        parts = iter(lambda: chosen.file.read(_PIECE), b"")
        return self.ask(name, path, parts=parts, suffix=suffix, **rest)

    def everything(self, name: str, path: Mapping[str, str] | None = None) -> list[Any]:
        """Return all items of a list, page after page."""
        page = self.ask(name, path, query={"limit": 100})
        found = list(page.items)
        while page.next is not None:
            page = self.ask(name, path, query={"limit": 100, "after": page.next})
            found += page.items
        return found


@dataclass(frozen=True)
class PageView:
    """A page: its template and what it is filled with; `part` is the template of what changes.

    If something was `refused`, that is among the values, and tells the status.
    """

    template: str
    values: Mapping[str, Any]
    part: str = ""

    @property
    def status(self) -> int:
        """The status of the answer."""
        refused = self.values.get("refused")
        return 200 if refused is None else int(refused.status)


Page: TypeAlias = Callable[[PageRequest], PageView | Response]


@dataclass(frozen=True)
class PageFace:
    """Pages at one path: a cookie says who asks, a form is the body, a refusal is a page."""

    service: Service
    path: str
    page: Page

    def named(self, request: Request) -> tuple[str, str]:
        """Name all pages alike, but for their paths."""
        return "page", self.path

    async def enter(self, request: Request) -> tuple[str, bool]:
        """Find whose session it is; whoever has none is sent to sign in."""
        request.state.cookie = cookie = sessions.cookie_of(request)
        user = request.scope.get(PROXY_USER, "")
        if not cookie and user and _wants_page(request):
            request.state.cookie = cookie = await run_sync(sessions.begin_as, self.service, user)
            request.state.fresh = True
        caller = await run_sync(sessions.caller_with, self.service, cookie, user)
        if caller is None:
            raise Problem(401, "unauthenticated", _SIGN_IN)
        request.state.caller = caller
        return caller.token, media_type_of(request) == _FILES

    async def work(self, request: Request) -> Work:
        """Read the form, and return what shows the page."""
        limits, cookie = self.service.settings.limits, request.state.cookie
        visit = PageRequest(
            self.service,
            request.state.caller,
            request.url.path,
            request.path_params,
            dict(request.query_params),
            *await own_form(request, cookie, limits.document, limits.upload),
            cookie,
            "x-fragment" in request.headers,
            str(request.base_url).rstrip("/"),
        )

        def work() -> Response:
            response = _answered(self.page, visit)
            if getattr(request.state, "fresh", False):
                sessions.set_cookie(request, response, cookie)
            return response

        return work

    def refused(self, request: Request, problem: Problem) -> Response:
        """Show it as a page to browsers, and as JSON to others."""
        return (
            _must_sign_in(request)
            if problem.kind == "unauthenticated"
            else refusal(request, problem)
        )


def _answered(page: Page, visit: PageRequest) -> Response:
    try:
        found, refused = attempted(lambda: page(visit))
    finally:
        for chosen in visit.files.values():
            chosen.file.close()
    if isinstance(found, Response):
        return found
    shown = found if refused is None else problem_page(refused)
    template = shown.part if visit.fragment and shown.part else shown.template
    values = {**_frame(visit), **shown.values}
    return HTMLResponse(render(template, values), shown.status, headers=HEADERS)


def problem_page(problem: Problem) -> PageView:
    """Return the page that says what was refused."""
    return PageView("problem.html", {"heading": problem.details().title, "refused": problem})


def _frame(visit: PageRequest) -> dict[str, Any]:
    caller = visit.caller
    menu = [
        {
            "name": name,
            "href": at,
            "here": visit.here == at or visit.here.startswith(f"{at}/"),
        }
        for name, at, action in _MENU
        if visit.may(action)
    ]
    if not visit.may("member.list"):
        at = f"/members/{caller.member}"
        menu.append({"name": "Your tokens", "href": at, "here": visit.here == at})
    told = FLASH.get(visit.query.get("told", ""))
    return {
        "who": {"name": caller.member, "roles": caller.role, "role": caller.role},
        "menu": menu,
        "csrf": hidden_field(visit.cookie),
        "may": visit.may,
        "address": visit.address,
        "flash": {"kind": "good", "text": told} if told else None,
    }


def hidden_field(cookie: str) -> Markup:
    """Return the hidden field that every form carries."""
    return Markup('<input type="hidden" name="{}" value="{}">').format(
        _FORM_FIELD, sessions.form_value(cookie)
    )


async def own_form(
    request: Request, cookie: str, document: int, upload: int = 0
) -> tuple[dict[str, str], dict[str, UploadFile]]:
    """Read a form that a page of ours has shown to this browser: its fields, its files.

    403 if it comes from elsewhere, 413 if its fields are larger than `document` or it is larger
    than `upload` more, 400 if it is no form.
    """
    if request.method != "POST":
        return {}, {}
    _check_origin(request)
    found = await _read_form(request, document, upload)
    texts = {name: text for name, text in found.multi_items() if isinstance(text, str)}
    files = {n: one for n, one in found.multi_items() if isinstance(one, UploadFile)}
    chosen = {name: one for name, one in files.items() if one.filename}
    sent, expected = texts.pop(_FORM_FIELD, ""), sessions.form_value(cookie)
    own = bool(cookie) and hmac.compare_digest(expected.encode(), sent.encode())
    for name, one in files.items():
        if not own or name not in chosen:
            one.file.close()
    if not own:
        raise Problem(403, "forbidden", "This form is too old, or not ours; open the page again.")
    lists = {name for name in texts if name.endswith("[]")}
    for name in lists:
        texts[name] = "\n".join(str(one) for one in found.getlist(name))
    return texts, chosen


def _check_origin(request: Request) -> None:
    """Refuse what a page of another origin has sent, by what the browser says about it."""
    origin = request.headers.get("origin")
    here = request.headers.get("host", "")
    elsewhere = origin is not None and origin.partition("://")[2] != here
    if elsewhere or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Problem(403, "forbidden", "Forms of other sites are not taken.")


async def _read_form(request: Request, document: int, upload: int) -> FormData:
    kind, pause = media_type_of(request), request.app.state.service.settings.limits.pause
    try:
        if kind == _FILES and upload:
            most = upload + document
            parser = MultiPartParser(
                request.headers,
                limited_body(request.stream(), most, pause),
                max_files=_MOST_FILES,
                max_fields=_MOST_FIELDS,
                max_part_size=document,
            )
            parser.spool_max_size = most  # rows never touch the disk unencrypted
            return await parser.parse()
        if kind == "application/x-www-form-urlencoded":
            parts = [part async for part in limited_body(request.stream(), document, pause)]
            text = b"".join(parts).decode()
            fields = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
            return FormData([*fields])
    except (MultiPartException, ValueError):
        raise Problem(400, "bad-request", "The form cannot be read.") from None
    raise Problem(415, "unsupported-media", "Pages take forms.")


def _must_sign_in(request: Request) -> Response:
    if not _wants_page(request) or "x-fragment" in request.headers:
        return problem_response(Problem(401, "unauthenticated", _SIGN_IN), HEADERS)
    response = RedirectResponse("/sign-in", 303, headers=HEADERS)
    if sessions.cookie_of(request):
        sessions.set_cookie(request, response, "")
    return response


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def refusal(request: Request, problem: Problem) -> Response:
    """Answer a request that reached no page: as a page to browsers, as JSON to others."""
    if not _wants_page(request):
        return problem_response(problem, HEADERS)
    shown = problem_page(problem)
    values = {"who": None, "flash": None, **shown.values}
    return HTMLResponse(render(shown.template, values), shown.status, headers=HEADERS)


def attempted(work: Callable[[], Any]) -> tuple[Any, Problem | None]:
    """Do something of which a refusal is shown beside a form: what came of it, or the refusal."""
    try:
        return work(), None
    except (Problem, QuiltworkError) as error:
        return None, problem_of(error)


def form_action(
    work: str | Callable[[PageRequest], Any],
    address: str,
    told: str,
    page: Callable[[PageRequest, Problem], PageView] = lambda _, refused: problem_page(refused),
    *,
    path: str = "",
    body: tuple[str, ...] = (),
    file: str = "",
    confirm: str = "",
) -> Page:
    """Return what a form does: `work`, then to a page that says so; a refusal is shown on `page`.

    What is said there is `told`, a word of `FLASH`.

    `work` is a function, or a route of the API. The field `path` of the form belongs to its path,
    those of `body` that are filled to its body, `file` is the field of an upload. Where `confirm`
    names a parameter of the address, its value must have been typed. The page may be that of what
    was `made`, in `address`.
    """

    def ask(visit: PageRequest) -> Any:
        form = {name: text.strip() for name, text in visit.form.items()}
        if confirm and form.get("confirm") != visit.path[confirm]:
            raise Problem(422, "invalid-input", f"Type the {confirm}'s name to delete.")
        if not isinstance(work, str):
            return work(visit)
        where = {**visit.path, path: form.get(path, "")} if path else visit.path
        if file:
            return visit.send(work, where, file)
        return visit.ask(work, where, {name: form[name] for name in body if form.get(name)})

    def answer(visit: PageRequest) -> PageView | Response:
        made, refused = attempted(lambda: ask(visit))
        if refused is not None:
            return page(visit, refused)
        to = f"{address.format(**visit.path, made=made)}?told={told}"
        return RedirectResponse(to, 303, headers=HEADERS)

    return answer


def download(route: str) -> Page:
    """Return what sends the file that a route of the API tells."""

    def answer(visit: PageRequest) -> Response:
        found = visit.ask(route, visit.path)
        named = {"Content-Disposition": f'attachment; filename="{found.name}.csv"'}
        kind = "text/csv; charset=utf-8"
        return Response(found.content, headers=HEADERS | named, media_type=kind)

    return answer


def whole_number(text: str, what: str) -> int:
    """Read a whole number of a form or an address."""
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Problem(422, "invalid-input", f"{what} is a whole number.")
    return int(text)


def sent(visit: PageRequest, usual: Mapping[str, str], *numbers: str) -> dict[str, Any]:
    """Return what was filled in of a form, as it usually is where a field is missing.

    Those of `numbers` are whole numbers.
    """
    found = {name: text.strip() for name, text in filled(visit, usual).items() if text.strip()}
    return {
        name: whole_number(text, f"The field {name.replace('_', ' ')}") if name in numbers else text
        for name, text in found.items()
    }


def filled(visit: PageRequest, usual: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form: as they were sent, or as they usually are."""
    return {name: visit.form.get(name, text) for name, text in usual.items()}


def require_fields(visit: PageRequest, *names: str) -> None:
    """Refuse a form that leaves out what it is about: nothing is spent on what is usual."""
    if not {"key", *names} <= visit.form.keys():
        raise Problem(422, "invalid-input", "The form is not whole; open the page again.")


def fresh_key() -> str:
    """Return a key for a form that spends: sent twice, it is answered once."""
    return secrets.token_hex(16)
