"""Routes as data: from one record each come the handler's checks, the OpenAPI text and the tests.

A handler is an ordinary function from a `Call` to a struct; it runs in a thread, after the caller
was recognised, the action allowed, the object found to be hers, and the body read.
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
from quiltwork.service.structs import NAME, converted
from quiltwork.service.uploads import Upload, received

if TYPE_CHECKING:
    from quiltwork.budget import Ledger
    from quiltwork.service.request_limits import ConcurrencyLimiter
    from quiltwork.service.vault import Vault

_NOTED = 100
_NARROW = ("self.read", "dataset.list")
"""What a token that is for some datasets may do without naming one of them."""

Result = TypeVar("Result")
Handler = TypeVar("Handler", bound="Callable[..., Any]")
Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]
Belongs: TypeAlias = "Callable[[Service, Caller, str], bool | None]"
"""Whether an object is the caller's own; None if there is no such object."""


@dataclass(frozen=True)
class Call:
    """One request, as a handler sees it: the caller is allowed to, `query` and `body` are read as
    structs.

    `key` is the Idempotency-Key of a route that spends, `upload` what was sent to one that takes
    files.
    """

    service: Service
    caller: Caller
    path: Mapping[str, str] = field(default_factory=dict)
    query: Any = None
    body: Any = None
    key: str = ""
    upload: Upload | None = None
    seen: Any = None
    """What the route's `look` found when the caller was recognised."""

    @property
    def who(self) -> str:
        """The member who asks."""
        return self.caller.member

    @property
    def sent(self) -> Upload:
        """The upload, on a route that takes one."""
        if self.upload is None:
            raise Problem(400, "bad-request", "A file is missing.")
        return self.upload


@dataclass(frozen=True)
class Route:
    """One thing that can be asked of the curator.

    `name` is unique. Each parameter of `path` must be known to `belongs` of some feature, or be
    listed in `free`; `action` is its line in the table of rights. `request`, `response` and `query`
    are structs, None without one. A route that `spends` needs an Idempotency-Key; the body of an
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
    look: Callable[[Call], Any] | None = None
    """What is to be read in the transaction in which the caller is recognised."""

    def carry_out(
        self,
        service: Service,
        admitted: Callable[[], Caller],
        path: Mapping[str, str],
        query: Any,
        key: str,
        body: Callable[[], Any],
    ) -> Any:
        """Do it for who is `admitted`, which refuses others; `body` is read, or lends an upload.

        Nothing is received without the right, which is asked for again when all of it has come.
        Whoever only reads is recognised and answered in one transaction.
        """
        if self.upload:
            service.read(lambda _: admitted())
            with body() as upload:
                caller = service.read(lambda _: admitted())
                return self.handler(Call(service, caller, path, query, key=key, upload=upload))

        def looked(_: Transaction) -> Call:
            call = Call(service, admitted(), path, query, body(), key)
            return call if self.look is None else replace(call, seen=self.look(call))

        if self.method == "GET":
            return service.read(lambda t: self.handler(looked(t)))
        return self.handler(service.read(looked))


@dataclass(frozen=True)
class Feature:
    """A part of the curator: its tables, whose its objects are, its files and its routes.

    `belongs` says by the name of a path's parameter whether an object is a caller's own; `files`
    which files of the vault are needed: others are deleted when the curator starts. `routes` are in
    the order in which their handlers stand in its module.
    """

    schema: Schema | None = None
    belongs: dict[str, Belongs] = field(default_factory=dict)
    files: Callable[[Transaction], Iterable[str]] | None = None
    routes: list[Route] = field(default_factory=list)

    def at(
        self, method: Method, path: str, action: str, **rest: Any
    ) -> Callable[[Handler], Handler]:
        """Make a handler a route, with the other fields of `Route` as they are not usual.

        Its name (without the underscore), its sentence and what it returns are those of the route.
        One that takes a transaction, `t`, is run in it: what is not a GET may write.
        """

        def added(handler: Handler) -> Handler:
            name, hints = handler.__name__.removeprefix("_"), get_type_hints(handler)
            told = hints["return"]
            fields = {"response": None if told is NoneType else told, **rest}

            def within(call: Call) -> Any:
                begun = call.service.read if method == "GET" else call.service.write
                return begun(lambda t: handler(call, t))

            run = within if "t" in hints else handler
            self.routes.append(
                Route(name, method, path, action, run, handler.__doc__ or "", **fields)
            )
            return handler

        return added


@dataclass(frozen=True)
class Service:
    """A curator at work: everything that handlers use. Made by `features.open_service`."""

    settings: Settings
    ledger: Ledger
    storage: Storage
    vault: Vault
    features: tuple[Feature, ...]
    concurrency: ConcurrencyLimiter
    """Places of those who ask."""
    uses: dict[str, str] = field(default_factory=dict)
    """When tokens were last used, until that is written."""
    loaded: dict[str, Any] = field(default_factory=dict)
    """Rows that were read lately, by dataset (`dataset_rows.py`)."""
    refused: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How many refusals of a member were noted in which hour."""
    plans: dict[Any, Any] = field(default_factory=dict)
    """Plans of releases that were made lately, for those who ask after a preview, or again."""
    queued: threading.Event = field(default_factory=threading.Event)
    """Set when there may be a publication to make (`publication_process.py`)."""

    _locks: WeakValueDictionary[tuple[str, ...], threading.Lock] = field(
        default_factory=WeakValueDictionary
    )
    _locks_lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, work: Callable[[Transaction], Result]) -> Result:
        """Do `work` on one committed state (`Storage.read`)."""
        return self.storage.read(work)

    def write(self, work: Callable[[Transaction], Result]) -> Result:
        """Do `work` alone and commit it (`Storage.write`)."""
        return self.storage.write(work)

    def lock_for(self, *about: str) -> threading.Lock:
        """Return the lock of those who do the same at once: they wait for each other."""
        with self._locks_lock:
            return self._locks.setdefault(about, threading.Lock())

    def keep(self, content: bytes, naming: Callable[[Transaction, str], Iterable[str]]) -> None:
        """Keep a file at rest that a transaction names; those that it replaces are deleted."""
        file = self.vault.write([content])
        try:
            replaced = self._unnamed(lambda t: naming(t, file))
        except StorageError:
            raise  # perhaps it was named: if not, the next start deletes it
        except BaseException:
            self.vault.delete(file)
            raise
        for old in replaced - {file}:  # the transaction may have run twice
            self.vault.delete(old)

    def forget(self, naming: Callable[[Transaction], Iterable[str]]) -> None:
        """Delete the files that a transaction no longer names, once it is committed."""
        for file in self._unnamed(naming):
            self.vault.delete(file)

    def _unnamed(self, naming: Callable[[Transaction], Iterable[str]]) -> set[str]:
        """Do a transaction; what it no longer names is deleted by the next start at the latest."""
        files: set[str] = set()  # of every time that it ran
        self.write(lambda t: files.update(map(self.vault.aged, naming(t))))
        return files

    @property
    def routes(self) -> tuple[Route, ...]:
        """All routes of all features."""
        return tuple(route for one in self.features for route in one.routes)

    def route(self, name: str) -> Route:
        """Return the route of a name."""
        return next(route for route in self.routes if route.name == name)

    def ask(
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
        """Do what the route of a name does, within the process, and return its struct; blocks.

        `parts` are what is sent to a route that takes an upload.
        """
        route, where = self.route(name), path or {}

        def admitted() -> Caller:
            check(route, self, caller, where)
            return caller

        def read() -> Any:
            return None if route.request is None else converted(dict(body or {}), route.request)

        asked = None if route.query is None else converted(dict(query or {}), route.query, False)
        sent = partial(received, self.vault, self.settings.limits, parts, suffix)
        return route.carry_out(self, admitted, where, asked, key, sent if route.upload else read)

    def belongs(self, caller: Caller, parameter: str, value: str) -> bool | None:
        """Whether an object is the caller's own; None if there is none, or her token excludes it.

        A token that is narrowed to datasets reaches nothing else.
        """
        if caller.datasets is not None and parameter == "dataset" and value not in caller.datasets:
            return None
        for one in self.features:
            if parameter in one.belongs:
                return one.belongs[parameter](self, caller, value)
        raise StorageError(f"No feature says whose a {parameter} is.")


def check(route: Route, service: Service, caller: Caller, path: Mapping[str, str]) -> None:
    """Refuse what the table of rights does not allow; refusals are noted in the audit log.

    403 if the role or the token never may; 404 if the object is not there, or not the caller's and
    hence none of her business.
    """
    if not all(re.match(NAME, value) for value in path.values()):
        raise not_found()
    allowed = scope(caller, route.action)
    if allowed is None:
        _note(service, caller, f"may not {route.action}")
        raise Problem(403, "forbidden", f"Your role or your token does not allow {route.action}.")
    if caller.datasets is not None and "dataset" not in path and route.action not in _NARROW:
        raise Problem(403, "forbidden", "Your token is for some datasets, and nothing else.")
    for parameter, value in path.items():
        if parameter not in route.free:
            own = service.belongs(caller, parameter, value)
            if own is None or (allowed == "own" and not own):
                _note(service, caller, f"may not {route.action}, or there is no such {parameter}")
                raise not_found()


def _note(service: Service, caller: Caller, text: str) -> None:
    """Note a refusal, the first hundred of an hour for each member: nobody fills the log."""
    hour = int(time.time() // 3600)
    since, count = service.refused.get(caller.member, (hour, 0))
    service.refused[caller.member] = (hour, count + 1 if since == hour else 1)
    if since != hour or count < _NOTED:
        service.ledger.note("refusal", text, None, caller.member)
