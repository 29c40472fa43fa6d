"""Routes as data: one record makes the endpoint, the OpenAPI entry and the tests of its rights.

A handler is an ordinary function from a `Call` to a struct. It runs in a worker thread, after the
caller was authenticated, her right to the action and to the objects in the path was checked, and
the body was parsed.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_type_hints
from weakref import WeakValueDictionary

from quiltwork.errors import StorageError
from quiltwork.service.problems import Problem, not_found
from quiltwork.service.rights import Caller, scope
from quiltwork.service.settings import Settings
from quiltwork.service.storage import Schema, Storage, Transaction
from quiltwork.service.structs import NAME, as_struct
from quiltwork.service.uploads import Upload, received

if TYPE_CHECKING:
    from quiltwork.budget import Ledger
    from quiltwork.service.request_limits import ConcurrencyLimiter
    from quiltwork.service.vault import Vault

_MAX_LOGGED_REFUSALS = 100
_WITHOUT_DATASET = ("self.read", "dataset.list")
"""Actions that a token narrowed to datasets may do although their path names none."""

Result = TypeVar("Result")
Handler = TypeVar("Handler", bound="Callable[..., Any]")
Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]
OwnershipCheck: TypeAlias = "Callable[[Service, Caller, str], bool | None]"
"""Whether the object of a name is the caller's own; None if there is no such object."""


@dataclass(frozen=True)
class Call:
    """One authorized request, as its handler gets it; `query` and `body` are parsed structs.

    `key` is the Idempotency-Key on a route that spends, `upload` the file on a route that takes
    one.
    """

    service: Service
    caller: Caller
    path: Mapping[str, str] = field(default_factory=dict)
    query: Any = None
    body: Any = None
    key: str = ""
    upload: Upload | None = None
    loaded: Any = None
    """What the route's `load` read in the transaction that authorized the caller."""

    @property
    def member(self) -> str:
        """The name of the member who made the request."""
        return self.caller.member

    @property
    def file(self) -> Upload:
        """The upload, on a route that takes one."""
        if self.upload is None:
            raise Problem(400, "bad-request", "A file is missing.")
        return self.upload


@dataclass(frozen=True)
class Route:
    """One operation of the API.

    `name` is unique. Each parameter of `path` is checked by the `ownership` of some feature, or is
    listed in `free`; `action` is its line in the table of rights. `request`, `response` and `query`
    are struct classes, or None. A route that `spends` needs an Idempotency-Key; the body of an
    `upload` is streamed.
    """

    name: str
    method: Method
    path: str
    action: str
    handler: Callable[[Call], Any]
    summary: str
    request: type | None = None
    response: type | None = None
    query: type | None = None
    status: int = 200
    spends: bool = False
    upload: bool = False
    free: tuple[str, ...] = ()
    load: Callable[[Call], Any] | None = None
    """What to read in the transaction that authorizes the caller; it becomes `Call.loaded`."""

    def run(
        self,
        service: Service,
        authorize: Callable[[], Caller],
        path: Mapping[str, str],
        query: Any,
        key: str,
        read_body: Callable[[], Any],
    ) -> Any:
        """Authorize the caller and run the handler.

        `read_body` returns the parsed body, or a context manager that lends the upload. An upload
        is received only from an authorized caller, whose right is checked again once all of it has
        arrived. A GET is authorized and answered in one transaction.
        """
        if self.upload:
            service.read(lambda _: authorize())
            with read_body() as upload:
                caller = service.read(lambda _: authorize())
                return self.handler(Call(service, caller, path, query, key=key, upload=upload))

        def authorized(_: Transaction) -> Call:
            call = Call(service, authorize(), path, query, read_body(), key)
            return call if self.load is None else replace(call, loaded=self.load(call))

        if self.method == "GET":
            return service.read(lambda t: self.handler(authorized(t)))
        return self.handler(service.read(authorized))


@dataclass(frozen=True)
class Feature:
    """A part of the curator: its tables, ownership checks, files and routes.

    `ownership` maps a path parameter to the check of whose object it is. `files` lists the vault
    files still in use: all others are deleted when the curator starts. `routes` keep the order of
    their handlers in the module.
    """

    schema: Schema | None = None
    ownership: dict[str, OwnershipCheck] = field(default_factory=dict)
    files: Callable[[Transaction], Iterable[str]] | None = None
    routes: list[Route] = field(default_factory=list)

    def at(
        self, method: Method, path: str, action: str, **options: Any
    ) -> Callable[[Handler], Handler]:
        """Return a decorator that makes a handler a route; `options` are further fields of `Route`.

        The route's name is the function's without its underscore, its summary the docstring, its
        response the return type. A handler with a parameter `t` runs inside a transaction, which
        may write unless the method is GET.
        """

        def register(handler: Handler) -> Handler:
            name, hints = handler.__name__.removeprefix("_"), get_type_hints(handler)
            returned = hints["return"]
            fields = {"response": None if returned is NoneType else returned, **options}

            def in_transaction(call: Call) -> Any:
                begin = call.service.read if method == "GET" else call.service.write
                return begin(lambda t: handler(call, t))

            run = in_transaction if "t" in hints else handler
            self.routes.append(
                Route(name, method, path, action, run, handler.__doc__ or "", **fields)
            )
            return handler

        return register


@dataclass(frozen=True)
class Service:
    """A running curator: everything that handlers use. Made by `features.open_service`."""

    settings: Settings
    ledger: Ledger
    storage: Storage
    vault: Vault
    features: tuple[Feature, ...]
    concurrency: ConcurrencyLimiter
    last_uses: dict[str, str] = field(default_factory=dict)
    """Times of last use by token, until they are written to the database."""
    row_cache: dict[str, Any] = field(default_factory=dict)
    """Rows that were read recently, by dataset (`dataset_rows.py`)."""
    refusal_counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By member: the current hour, and how many refusals were logged in it."""
    plan_cache: dict[Any, Any] = field(default_factory=dict)
    """Noise plans of recent releases, reused by an answer after its preview and by retries."""
    publication_queued: threading.Event = field(default_factory=threading.Event)
    """Set when there may be a publication to make (`publication_process.py`)."""

    _locks: WeakValueDictionary[tuple[str, ...], threading.Lock] = field(
        default_factory=WeakValueDictionary
    )
    _locks_lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` on one committed state (`Storage.read`)."""
        return self.storage.read(work)

    def write(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` exclusively and commit it (`Storage.write`)."""
        return self.storage.write(work)

    def lock_for(self, *subject: str) -> threading.Lock:
        """Return the lock of one subject, so that concurrent requests about it take turns."""
        with self._locks_lock:
            return self._locks.setdefault(subject, threading.Lock())

    def store_file(
        self, content: bytes, reference: Callable[[Transaction, str], Iterable[str]]
    ) -> None:
        """Store a file in the vault, referenced from a transaction.

        `reference` writes the file's name and returns the files that it replaces, which are
        deleted after the commit.
        """
        file = self.vault.write([content])
        try:
            replaced = self._dereferenced(lambda t: reference(t, file))
        except StorageError:
            raise  # the commit is in doubt: if it failed, the next start deletes the file
        except BaseException:
            self.vault.delete(file)
            raise
        for old in replaced - {file}:  # the transaction may have run twice
            self.vault.delete(old)

    def delete_files(self, dereference: Callable[[Transaction], Iterable[str]]) -> None:
        """Delete the files that a transaction no longer references, once it is committed."""
        for file in self._dereferenced(dereference):
            self.vault.delete(file)

    def _dereferenced(self, work: Callable[[Transaction], Iterable[str]]) -> set[str]:
        """Run a transaction; return the files it no longer references.

        They are marked first, so if the process dies the next start deletes them.
        """
        files: set[str] = set()  # the transaction may run twice: collected over both runs
        self.write(lambda t: files.update(map(self.vault.mark_unused, work(t))))
        return files

    @property
    def routes(self) -> tuple[Route, ...]:
        """All routes of all features."""
        return tuple(route for feature in self.features for route in feature.routes)

    def route(self, name: str) -> Route:
        """Return the route of a name."""
        return next(route for route in self.routes if route.name == name)

    def call(
        self,
        caller: Caller,
        name: str,
        path: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        parts: Iterable[bytes] = (),
        suffix: str = ".csv",
        key: str = "",
    ) -> Any:
        """Call a route within the process, with the same checks, and return its struct; blocks.

        `parts` are the content for a route that takes an upload.
        """
        route, path = self.route(name), path or {}

        def authorize() -> Caller:
            check_rights(route, self, caller, path)
            return caller

        def parse() -> Any:
            return None if route.request is None else as_struct(dict(body or {}), route.request)

        parameters = (
            None if route.query is None else as_struct(dict(query or {}), route.query, False)
        )
        receive = partial(received, self.vault, self.settings.limits, parts, suffix)
        return route.run(self, authorize, path, parameters, key, receive if route.upload else parse)

    def is_own(self, caller: Caller, parameter: str, value: str) -> bool | None:
        """Whether an object is the caller's own; None if it does not exist for her token.

        A token narrowed to datasets reaches no others.
        """
        if caller.datasets is not None and parameter == "dataset" and value not in caller.datasets:
            return None
        for feature in self.features:
            if parameter in feature.ownership:
                return feature.ownership[parameter](self, caller, value)
        raise StorageError(f"No feature has an ownership check for {parameter}.")


def check_rights(route: Route, service: Service, caller: Caller, path: Mapping[str, str]) -> None:
    """Refuse what the table of rights does not allow, and note it in the audit log.

    403 if the caller's role or token excludes the action; 404 if an object does not exist or is
    not hers, so that a refusal never confirms that it exists.
    """
    if not all(re.match(NAME, value) for value in path.values()):
        raise not_found()
    allowed = scope(caller, route.action)
    if allowed is None:
        _log_refusal(service, caller, f"may not {route.action}")
        raise Problem(403, "forbidden", f"Your role or your token does not allow {route.action}.")
    if (
        caller.datasets is not None
        and "dataset" not in path
        and route.action not in _WITHOUT_DATASET
    ):
        raise Problem(403, "forbidden", "Your token is limited to certain datasets.")
    for parameter, value in path.items():
        if parameter not in route.free:
            own = service.is_own(caller, parameter, value)
            if own is None or (allowed == "own" and not own):
                text = f"may not {route.action}, or there is no such {parameter}"
                _log_refusal(service, caller, text)
                raise not_found()


def _log_refusal(service: Service, caller: Caller, text: str) -> None:
    """Note a refusal; at most 100 an hour for each member, so that nobody can fill the log."""
    hour = int(time.time() // 3600)
    since, count = service.refusal_counts.get(caller.member, (hour, 0))
    service.refusal_counts[caller.member] = (hour, count + 1 if since == hour else 1)
    if since != hour or count < _MAX_LOGGED_REFUSALS:
        service.ledger.note("refusal", text, None, caller.member)
