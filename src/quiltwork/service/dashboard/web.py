"""From a browser's request to a page: session, form, rights, template, headers.

A page is an ordinary function from a `PageRequest` to a `PageView` or a response. It calls routes
of the API by name (`PageRequest.api`), under the same table of rights, so no page can show or do
what the API would refuse.
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
_CHUNK = 1 << 20
_SIGN_IN = "Sign in to see this page. The API takes a token instead."
_MAX_FIELDS = 500
_MAX_FILES = 4
_MENU = (
    ("Overview", "/", "dataset.list"),
    ("Tables", "/tables", "table.list"),
    ("Leaderboards", "/leaderboards", "holdout.list"),
    ("Jobs", "/jobs", "job.list"),
    ("Members", "/members", "member.list"),
    ("Audit log", "/log", "log.read"),
)
FLASH = {
    "asked": "The answer is below. Its cost was debited from the budget.",
    "registered": "The dataset is registered. Nothing has been spent yet.",
    "added": "The rows were added.",
    "shared": "Access was changed.",
    "retired": "The dataset is retired: nothing more is released. The ledger stays.",
    "deleted": "The rows were deleted. The ledger and the log stay.",
    "revoked": "The token was revoked at once.",
    "removed": "The member was removed, with all tokens.",
    "cancelled": "The job was cancelled.",
    "submitted": "Your rows were stored. Only you can replace or delete them.",
    "created": "Created.",
    "queued": "The publication is queued. A separate process will run it.",
    "scored": "Your predictions were scored.",
    "named": "The submission is chosen for the end. You can choose another until then.",
    "ended": "The competition has ended.",
}
"""Messages shown after an action, by the word in the page's address."""


@dataclass(frozen=True)
class PageRequest:
    """A request from a signed-in browser.

    `here` is the path of the page, `files` holds uploads by form field, `fragment` asks for only
    the part of the page that changes, `address` is the curator's address as the browser sees it.
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
        """Whether the caller may do an action on some object."""
        return scope(self.caller, action) is not None

    def require(self, action: str) -> None:
        """Refuse the page with 403 if the caller may not do an action."""
        if not self.may(action):
            raise Problem(403, "forbidden", f"Your role or your token does not allow {action}.")

    def api(
        self,
        name: str,
        path: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> Any:
        """Call a route of the API as the caller, and return its struct."""
        return self.service.call(self.caller, name, path, body, **rest)

    def upload(self, name: str, path: Mapping[str, str], field: str, **rest: Any) -> Any:
        """Call a route that takes an upload, with the file of a form field."""
        chosen = self.files.get(field)
        suffix = Path(chosen.filename or "").suffix.lower() if chosen else ""
        if chosen is None or suffix not in MEDIA_TYPES.values():
            raise Problem(
                422, "invalid-input", "Choose a file whose name ends with .csv or .parquet."
            )
        parts = iter(lambda: chosen.file.read(_CHUNK), b"")
        return self.api(name, path, parts=parts, suffix=suffix, **rest)

    def list_all(self, name: str, path: Mapping[str, str] | None = None) -> list[Any]:
        """Return all items of a list route, fetching every page of it."""
        page = self.api(name, path, query={"limit": 100})
        items = list(page.items)
        while page.next is not None:
            page = self.api(name, path, query={"limit": 100, "after": page.next})
            items += page.items
        return items


@dataclass(frozen=True)
class PageView:
    """A page: a template and its values; `part` is the template of the part that changes.

    A refusal is the value `refused`; its status becomes the response's.
    """

    template: str
    values: Mapping[str, Any]
    part: str = ""

    @property
    def status(self) -> int:
        """The HTTP status of the response."""
        refused = self.values.get("refused")
        return 200 if refused is None else int(refused.status)


Page: TypeAlias = Callable[[PageRequest], PageView | Response]


@dataclass(frozen=True)
class PageAdapter:
    """The page at one path: authenticated by a cookie, with forms as bodies, refused by a page."""

    service: Service
    path: str
    page: Page

    def label(self, request: Request) -> tuple[str, str]:
        """Return one name for all pages, and the page's path."""
        return "page", self.path

    async def admit(self, request: Request) -> tuple[str, bool]:
        """Find the caller of the session; without one the browser is sent to sign in."""
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

    async def prepare(self, request: Request) -> Work:
        """Read the form; the work renders the page."""
        limits, cookie = self.service.settings.limits, request.state.cookie
        page_request = PageRequest(
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
            response = _rendered(self.page, page_request)
            if getattr(request.state, "fresh", False):
                sessions.set_cookie(request, response, cookie)
            return response

        return work

    def refusal(self, request: Request, problem: Problem) -> Response:
        """Return the problem as a page for browsers, as JSON for others."""
        return (
            _must_sign_in(request)
            if problem.kind == "unauthenticated"
            else refusal_response(request, problem)
        )


def _rendered(page: Page, request: PageRequest) -> Response:
    try:
        result, refused = try_or_problem(lambda: page(request))
    finally:
        for chosen in request.files.values():
            chosen.file.close()
    if isinstance(result, Response):
        return result
    view = result if refused is None else problem_page(refused)
    template = view.part if request.fragment and view.part else view.template
    values = {**_frame(request), **view.values}
    return HTMLResponse(render(template, values), view.status, headers=HEADERS)


def problem_page(problem: Problem) -> PageView:
    """Return the page that states a refusal."""
    return PageView("problem.html", {"heading": problem.details().title, "refused": problem})


def _frame(request: PageRequest) -> dict[str, Any]:
    """Return the values of the frame around every page: menu, caller, message."""
    caller = request.caller
    menu = [
        {
            "name": name,
            "href": at,
            "here": request.here == at or request.here.startswith(f"{at}/"),
        }
        for name, at, action in _MENU
        if request.may(action)
    ]
    if not request.may("member.list"):
        at = f"/members/{caller.member}"
        menu.append({"name": "Your tokens", "href": at, "here": request.here == at})
    message = FLASH.get(request.query.get("flash", ""))
    return {
        "who": {"name": caller.member, "roles": caller.role, "role": caller.role},
        "menu": menu,
        "csrf": hidden_field(request.cookie),
        "may": request.may,
        "address": request.address,
        "flash": {"kind": "good", "text": message} if message else None,
    }


def hidden_field(cookie: str) -> Markup:
    """Return the hidden field that protects a form against cross-site requests."""
    return Markup('<input type="hidden" name="{}" value="{}">').format(
        _FORM_FIELD, sessions.form_value(cookie)
    )


async def own_form(
    request: Request, cookie: str, document: int, upload: int = 0
) -> tuple[dict[str, str], dict[str, UploadFile]]:
    """Read a form that one of our pages showed to this browser: its fields and its files.

    403 if it comes from another site, 413 if its fields exceed `document` bytes or its files
    `upload` bytes more, 400 if it is malformed.
    """
    if request.method != "POST":
        return {}, {}
    _check_origin(request)
    form = await _parse_form(request, document, upload)
    texts = {name: text for name, text in form.multi_items() if isinstance(text, str)}
    files = {name: file for name, file in form.multi_items() if isinstance(file, UploadFile)}
    chosen = {name: file for name, file in files.items() if file.filename}
    actual, expected = texts.pop(_FORM_FIELD, ""), sessions.form_value(cookie)
    own = bool(cookie) and hmac.compare_digest(expected.encode(), actual.encode())
    for name, file in files.items():
        if not own or name not in chosen:
            file.file.close()
    if not own:
        raise Problem(
            403, "forbidden", "The form has expired or comes from another site. Reload the page."
        )
    lists = {name for name in texts if name.endswith("[]")}
    for name in lists:
        texts[name] = "\n".join(str(value) for value in form.getlist(name))
    return texts, chosen


def _check_origin(request: Request) -> None:
    """Refuse forms of other origins, by the headers that browsers set."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    foreign = origin is not None and origin.partition("://")[2] != host
    if foreign or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Problem(403, "forbidden", "The form was sent by another site and was refused.")


async def _parse_form(request: Request, document: int, upload: int) -> FormData:
    kind, pause = media_type_of(request), request.app.state.service.settings.limits.pause
    try:
        if kind == _FILES and upload:
            max_bytes = upload + document
            parser = MultiPartParser(
                request.headers,
                limited_body(request.stream(), max_bytes, pause),
                max_files=_MAX_FILES,
                max_fields=_MAX_FIELDS,
                max_part_size=document,
            )
            parser.spool_max_size = max_bytes  # in memory: rows never reach the disk unencrypted
            return await parser.parse()
        if kind == "application/x-www-form-urlencoded":
            parts = [part async for part in limited_body(request.stream(), document, pause)]
            text = b"".join(parts).decode()
            fields = parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
            return FormData([*fields])
    except (MultiPartException, ValueError):
        raise Problem(400, "bad-request", "The form cannot be read.") from None
    raise Problem(415, "unsupported-media", "Pages take HTML forms only.")


def _must_sign_in(request: Request) -> Response:
    if not _wants_page(request) or "x-fragment" in request.headers:
        return problem_response(Problem(401, "unauthenticated", _SIGN_IN), HEADERS)
    response = RedirectResponse("/sign-in", 303, headers=HEADERS)
    if sessions.cookie_of(request):
        sessions.set_cookie(request, response, "")
    return response


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def refusal_response(request: Request, problem: Problem) -> Response:
    """Return a problem without the frame of a session: a page for browsers, else JSON."""
    if not _wants_page(request):
        return problem_response(problem, HEADERS)
    view = problem_page(problem)
    values = {"who": None, "flash": None, **view.values}
    return HTMLResponse(render(view.template, values), view.status, headers=HEADERS)


def try_or_problem(work: Callable[[], Any]) -> tuple[Any, Problem | None]:
    """Return the result of `work` and None, or None and the problem that it raised."""
    try:
        return work(), None
    except (Problem, QuiltworkError) as error:
        return None, problem_of(error)


def form_action(
    work: str | Callable[[PageRequest], Any],
    address: str,
    flash: str,
    page: Callable[[PageRequest, Problem], PageView] = lambda _, refused: problem_page(refused),
    *,
    path: str = "",
    body: tuple[str, ...] = (),
    file: str = "",
    confirm: str = "",
) -> Page:
    """Return the handler of a form: do `work`, then redirect to `address` with a message.

    `work` is a function, or the name of a route of the API. The form's field `path` goes into that
    route's path, filled fields of `body` into its body, and `file` names the field of an upload.
    With `confirm` the value of that path parameter must have been typed. `address` may use the
    result as `result`; the message is a word of `FLASH`. A refusal is shown on `page`.
    """

    def submit(request: PageRequest) -> Any:
        form = {name: text.strip() for name, text in request.form.items()}
        if confirm and form.get("confirm") != request.path[confirm]:
            raise Problem(422, "invalid-input", f"Type the name of the {confirm} to confirm.")
        if not isinstance(work, str):
            return work(request)
        parameters = {**request.path, path: form.get(path, "")} if path else request.path
        if file:
            return request.upload(work, parameters, file)
        return request.api(work, parameters, {name: form[name] for name in body if form.get(name)})

    def handle(request: PageRequest) -> PageView | Response:
        result, refused = try_or_problem(lambda: submit(request))
        if refused is not None:
            return page(request, refused)
        to = f"{address.format(**request.path, result=result)}?flash={flash}"
        return RedirectResponse(to, 303, headers=HEADERS)

    return handle


def download(route: str) -> Page:
    """Return a page that sends the file that a route of the API returns."""

    def send(request: PageRequest) -> Response:
        file = request.api(route, request.path)
        disposition = {"Content-Disposition": f'attachment; filename="{file.name}.csv"'}
        kind = "text/csv; charset=utf-8"
        return Response(file.content, headers=HEADERS | disposition, media_type=kind)

    return send


def parse_whole_number(text: str, field: str) -> int:
    """Return the whole number in a form field or an address; 422 for anything else."""
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Problem(422, "invalid-input", f"{field} must be a whole number.")
    return int(text)


def submitted(request: PageRequest, defaults: Mapping[str, str], *numbers: str) -> dict[str, Any]:
    """Return the filled fields of a form, with those of `numbers` as whole numbers."""
    values = form_values(request, defaults).items()
    texts = {name: text.strip() for name, text in values if text.strip()}
    return {
        name: parse_whole_number(text, f"The field {name.replace('_', ' ')}")
        if name in numbers
        else text
        for name, text in texts.items()
    }


def form_values(request: PageRequest, defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form as they were sent, or else their defaults."""
    return {name: request.form.get(name, text) for name, text in defaults.items()}


def require_fields(request: PageRequest, *names: str) -> None:
    """Refuse an incomplete form, so that nothing is spent on default values."""
    if not {"key", *names} <= request.form.keys():
        raise Problem(422, "invalid-input", "The form is incomplete. Reload the page.")


def fresh_key() -> str:
    """Return an idempotency key for a form that spends: sent twice, it is answered once."""
    return secrets.token_hex(16)
