"""Asks a schema registry over Confluent's REST interface. What an id means never changes, so it is kept.

A registry that cannot be reached is asked again for a while. Then the batch fails with an error that says so:
to go on without an answer would send good records to the dead letters.
"""

from __future__ import annotations

import base64
import functools
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, Final

from headrace.core.errors import HeadraceError

_TIMEOUT_S: Final = 10.0
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0
#: How long a batch waits for a registry that does not answer, for example while it is restarted.
PATIENCE_S: Final = 60.0


class RegistryUnreachable(HeadraceError):
    """Nobody answered, or with a failure of its own. The same question may succeed later."""


class RegistryRefused(HeadraceError):
    """The registry answered that it does not have this, or that one may not ask."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_about_us(self) -> bool:
        """Whoever asks may not, whatever it is that is asked for."""
        return self.status in (401, 403, 407)


@dataclass(frozen=True)
class RegisteredSchema:
    id: int
    type: str
    text: str
    #: Schemas that this one names, with those that they name, each once and before whoever needs it.
    references: tuple[tuple[str, str], ...] = ()


class RegistryClient:
    """One registry. Threads may share it."""

    def __init__(self, url: str, *, patience_s: float = PATIENCE_S) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            # Not as it was written: a password may stand in it.
            raise RegistryRefused("the registry has no address: write http://host:port, or https://", 400)
        self._patience_s = patience_s
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        self._authorization: str | None = None
        host = parts.netloc.rpartition("@")[2]
        if parts.username is not None:
            secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            self._authorization = "Basic " + base64.b64encode(secret.encode()).decode()
        #: Without the password, because errors show it.
        self.address = urllib.parse.urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        #: By id. A version is asked for anew: after a deletion for good, its number goes to another schema.
        self._kept: dict[int, RegisteredSchema] = {}
        self._lock = threading.Lock()

    def versions(self, subject: str) -> list[int]:
        """Every version, with the deleted ones: records that were written with them are still there."""
        found = self._get(f"/subjects/{_quoted(subject)}/versions?deleted=true")
        return sorted(int(version) for version in found)

    def latest_version(self, subject: str) -> int:
        return int(self._get(f"/subjects/{_quoted(subject)}/versions/latest")["version"])

    def version(self, subject: str, version: int) -> RegisteredSchema:
        path = f"/subjects/{_quoted(subject)}/versions/{version}?deleted=true"
        document = self._get(path)
        return self._known(int(document["id"])) or self._learnt(path, document)

    def by_id(self, number: int) -> RegisteredSchema | None:
        """None where the registry does not know it."""
        known = self._known(number)
        if known is not None:
            return known
        path = f"/schemas/ids/{number}?"
        try:
            return self._learnt(path, self._get(path), number)
        except RegistryRefused as refused:
            if refused.status == 404:
                return None
            raise

    def _known(self, number: int) -> RegisteredSchema | None:
        with self._lock:
            return self._kept.get(number)

    def _learnt(self, path: str, document: Any, number: int | None = None) -> RegisteredSchema:
        """Keeps what the answer to `path` says, under the id that it names if none is given."""
        kind = document.get("schemaType") or "AVRO"
        if kind == "PROTOBUF":
            # As a descriptor, which needs no parser for Protobuf's own language.
            document = self._get(f"{path}&format=serialized")
        references: dict[str, str] = {}
        for each in document.get("references") or ():
            named = self.version(each["subject"], int(each["version"]))
            references.update(named.references)
            references[each["name"]] = named.text
        found = RegisteredSchema(
            int(document["id"]) if number is None else number,
            kind,
            document["schema"],
            tuple(references.items()),
        )
        with self._lock:
            self._kept[found.id] = found
        return found

    def _get(self, path: str) -> Any:
        pause_s, give_up = _FIRST_PAUSE_S, time.monotonic() + self._patience_s
        while True:
            try:
                return self._ask(path)
            except RegistryUnreachable:
                if time.monotonic() + pause_s > give_up:
                    raise
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _ask(self, path: str) -> Any:
        request = urllib.request.Request(self.address + path, headers=self._headers)
        if self._authorization is not None:  # for this address alone, wherever it sends
            request.add_unredirected_header("Authorization", self._authorization)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(2000).decode(errors="replace")
            if error.code == 429 or error.code >= 500:
                raise self._unreachable(f"it answered {error.code} {said}") from None
            raise RegistryRefused(
                f"the schema registry {self.address} answered {error.code} to {path}: {_message(said)}",
                error.code,
            ) from None
        except (OSError, ValueError) as error:
            raise self._unreachable(str(getattr(error, "reason", error))) from None

    def _unreachable(self, why: str) -> RegistryUnreachable:
        return RegistryUnreachable(
            f"the schema registry {self.address} cannot be asked: {why}. Nothing was lost: "
            "the batch is read again when the query is started again."
        )


def _quoted(subject: str) -> str:
    return urllib.parse.quote(subject, safe="")


def _message(said: str) -> str:
    try:
        return str(json.loads(said)["message"])
    except (ValueError, LookupError, TypeError):
        return said


@functools.lru_cache(maxsize=64)
def client(url: str) -> RegistryClient:
    """One for each registry and process, so that what was learnt once is kept from batch to batch."""
    return RegistryClient(url)
