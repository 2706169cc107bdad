"""Who else names objects of a partition: its forks, in one object beside its manifest.

    {"version":1,"change":3,"forks":[["<topic id>",4000]]}

A fork writes itself down there before it reads the manifest of its origin, under the condition that nobody
has written since it read. Whoever deletes an object of the origin has given it up in the manifest first, and
reads this afterwards. So either the fork's reading came before the object was given up, and then the fork was
written down already; or it came after, and then the fork does not name the object. No clock decides, and no
listing.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple
from uuid import UUID

from headrace.core.ports_objects import ABSENT, Absent, Done, Found, Tag
from headrace.tier.calls import Get, PutIf, Steps, reason_of
from headrace.tier.knowledge import Failed, Seen
from headrace.tier.names import Folder, ObjectName, TieredPartition, decode_id, encode_id
from headrace.tier.writing import read

_VERSION: Final = 1
_ATTEMPTS: Final = 10


class RegisteredFork(NamedTuple):
    topic_id: UUID
    until: int
    """It names nothing of its origin that begins here or later."""


class Register(NamedTuple):
    forks: tuple[RegisteredFork, ...] = ()
    change: int = 0
    """One more with each write, so that no content comes back: tags may be those of contents."""


class Hold(NamedTuple):
    """A fork names what begins in this range."""

    first: int
    until: int

    def has(self, name: ObjectName) -> bool:
        return self.first <= name.base_offset < self.until


def encode(register: Register) -> bytes:
    forks = [[encode_id(each.topic_id), each.until] for each in register.forks]
    document = {"version": _VERSION, "change": register.change, "forks": forks}
    return json.dumps(document, separators=(",", ":")).encode()


def decode(data: bytes) -> Register:
    """ValueError if it is none."""
    try:
        document = json.loads(data)
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']} is not known")
        forks = tuple(
            RegisteredFork(decode_id(topic_id), int(until)) for topic_id, until in document["forks"]
        )
        return Register(forks, int(document["change"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no register of forks: {error}") from None


def read_register(folder: Folder) -> Steps[tuple[Register, Tag | Absent] | Failed]:
    outcome = yield Get(folder.forks)
    if isinstance(outcome, Absent):
        return Register(), ABSENT
    if not isinstance(outcome, Found):
        return Failed(f"{folder.forks}: {reason_of(outcome)}")
    try:
        return decode(outcome.data), outcome.tag
    except ValueError as error:
        return Failed(f"{folder.forks}: {error}")  # whoever deletes holds everything then


def register(origin: Folder, fork: RegisteredFork) -> Steps[Failed | None]:
    """None once it is there. It may be asked for again and again."""
    return (yield from _change(origin, fork, is_there=True))


def unregister(origin: Folder, topic_id: UUID) -> Steps[Failed | None]:
    return (yield from _change(origin, RegisteredFork(topic_id, 0), is_there=False))


def _change(origin: Folder, fork: RegisteredFork, *, is_there: bool) -> Steps[Failed | None]:
    """Whatever came of a write, the next reading says it: each write under its own condition."""
    reason = ""
    for _ in range(_ATTEMPTS):
        found = yield from read_register(origin)
        if isinstance(found, Failed):
            return found
        known, tag = found
        others = tuple(each for each in known.forks if each.topic_id != fork.topic_id)
        if is_there == (len(others) < len(known.forks)):
            return None
        changed = Register((*others, fork) if is_there else others, known.change + 1)
        outcome = yield PutIf(origin.forks, encode(changed), tag)
        if isinstance(outcome, Done):
            return None
        reason = reason_of(outcome)
    return Failed(f"{origin.forks}: {reason}")


def holds(origin: Folder, partition: TieredPartition) -> Steps[tuple[Hold, ...] | Failed]:
    """What of a partition forks name. To be asked after the objects were given up in its manifest."""
    found = yield from read_register(origin)
    if isinstance(found, Failed):
        return found
    held: list[Hold] = []
    for each in found[0].forks:
        theirs = TieredPartition(each.topic_id, partition.partition)
        seen = yield from read(origin.sibling(each.topic_id), theirs)
        if isinstance(seen, Failed):
            return seen
        manifest = seen.known.manifest if isinstance(seen, Seen) else None
        if manifest is None or manifest.origin is None:
            held.append(Hold(0, each.until))  # it is being made, or nobody can tell
        elif manifest.first_shared is not None:
            held.append(Hold(manifest.first_shared, manifest.origin.until))
    return tuple(held)


def held(name: ObjectName, all_holds: tuple[Hold, ...]) -> bool:
    return any(each.has(name) for each in all_holds)
