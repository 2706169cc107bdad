"""Reading the manifest, and writing it over the one that it was made from."""

from __future__ import annotations

from headrace.core.ports_objects import ABSENT, Absent, Done, Found, LostRace, Refused
from headrace.tier.calls import Get, PutIf, Steps, reason_of
from headrace.tier.knowledge import Commit, Failed, Known, Overtaken, Seen, Unsettled, Unusable, Written
from headrace.tier.manifest import Manifest
from headrace.tier.manifest_format import CorruptManifest, NewerManifest, decode, decode_page, encode
from headrace.tier.names import Folder, TieredPartition
from headrace.tier.safeguards import TierSafeguards
from headrace.tier.segments import PageRef, RemoteSegment


def read(folder: Folder, partition: TieredPartition) -> Steps[Seen | Failed | Unusable]:
    outcome = yield Get(folder.manifest)
    if isinstance(outcome, Absent):
        return Seen(Known(None, ABSENT))
    if not isinstance(outcome, Found):
        return Failed(reason_of(outcome))
    try:
        return Seen(Known(decode(outcome.data, partition), outcome.tag))
    except (CorruptManifest, NewerManifest) as error:
        return Unusable(f"{folder.manifest}: {error}")


def read_page(
    folder: Folder, partition: TieredPartition, page: PageRef
) -> Steps[tuple[RemoteSegment, ...] | Failed | Unusable]:
    key = folder.page(page.name)
    outcome = yield Get(key)
    if isinstance(outcome, Absent):
        return Unusable(f"{key} is missing")
    if not isinstance(outcome, Found):
        return Failed(reason_of(outcome))
    try:
        return decode_page(outcome.data, partition, page)
    except (CorruptManifest, NewerManifest) as error:
        return Unusable(f"{key}: {error}")


def read_page_of(
    folder: Folder, partition: TieredPartition, known: Known, page: PageRef
) -> Steps[tuple[RemoteSegment, ...] | Failed | Overtaken | Unusable]:
    """A page that is named in what is known. It is gone if that is no longer the manifest, and then only."""
    found = yield from read_page(folder, partition, page)
    if not isinstance(found, Unusable):
        return found
    now = yield from read(folder, partition)
    if not isinstance(now, Seen):
        return now
    return found if now.known.tag == known.tag else Overtaken(now.known)


def commit(folder: Folder, before: Known, changed: Manifest, safeguards: TierSafeguards) -> Steps[Commit]:
    outcome = yield PutIf(folder.manifest, encode(changed), before.tag)
    if isinstance(outcome, Done) and outcome.tag is not None:
        return Written(Known(changed, outcome.tag))
    if isinstance(outcome, Refused):
        return Failed(outcome.reason)
    if not safeguards.settle_first and not isinstance(outcome, LostRace):
        return Failed(reason_of(outcome))
    if isinstance(outcome, LostRace) and not safeguards.conditional_writes:
        found = yield from read(folder, changed.partition)
        if isinstance(found, Seen):
            yield PutIf(folder.manifest, encode(changed), found.known.tag)
    return (yield from settle(folder, Unsettled(changed, before.tag, reason_of(outcome))))


def settle(folder: Folder, pending: Unsettled) -> Steps[Commit]:
    """By reading, what became of a write. It may still take effect as long as what it expects is there."""
    found = yield from read(folder, pending.manifest.partition)
    if isinstance(found, Unusable):
        return found
    if isinstance(found, Failed):
        return Unsettled(pending.manifest, pending.expected, found.reason)
    if found.known.manifest is not None and found.known.manifest.is_by(pending.manifest):
        return Written(found.known)
    if found.known.tag == pending.expected:
        return pending
    return Overtaken(found.known)


def repeat(folder: Folder, pending: Unsettled) -> Steps[Commit]:
    """Settle it, and where it is not there write the very same once more: of two, one takes effect."""
    settled = yield from settle(folder, pending)
    if settled is not pending:
        return settled
    outcome = yield PutIf(folder.manifest, encode(pending.manifest), pending.expected)
    if isinstance(outcome, Done) and outcome.tag is not None:
        return Written(Known(pending.manifest, outcome.tag))
    return (yield from settle(folder, pending))
