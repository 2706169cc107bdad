"""The object store port over obstore: S3, Google's and Azure's stores by one client.

obstore repeats nothing here. A conditional write that it repeated by itself would lose against its own first
attempt, and nobody would know. Calls run on a loop of their own thread, because that is what gives each of
them its own deadline; bytes pass by without the interpreter.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import obstore
from obstore import exceptions

from headrace.core.ports import Buffer
from headrace.core.ports_objects import (
    ABSENT,
    Absent,
    ConditionalOutcome,
    DeleteOutcome,
    Done,
    Found,
    GetOutcome,
    Listing,
    ListOutcome,
    LostRace,
    ObjectEntry,
    OutcomeUnknown,
    Part,
    PartialUpload,
    PutOutcome,
    RangeOutcome,
    Refused,
    Tag,
    UploadsOutcome,
)

if TYPE_CHECKING:
    from obstore.store import ObjectStore as AnyStore

    from headrace.objects.s3_uploads import S3Uploads

_REFUSALS: Final = (
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
    exceptions.NotSupportedError,
    exceptions.InvalidPathError,
    exceptions.UnknownConfigurationKeyError,
    NotImplementedError,
)
_NO: Final = re.compile(r"status code: 4(?!08|09|29)\d\d|Invalid range")
"""A status that no repetition changes. 408, 409 and 429 mean: later."""
_NOTHING_THERE: Final = frozenset(("NoSuchKey", "NoSuchUpload", "NoSuchVersion", "BlobNotFound"))
"""What S3's, Google's and Azure's stores call an object that is not there."""
_BY_HTTP: Final = "status code: 404"
_SAID: Final = re.compile(
    r"status code: (?P<status>[^:]*).*?<Code>(?P<code>[^<]*)</Code>(?:<Message>(?P<text>[^<]*))?", re.DOTALL
)
_LISTED_AT_ONCE: Final = 1000
LARGEST_WHOLE_BYTES: Final = 64 * 1024 * 1024
"""Of an object that is read in one piece, into memory: manifests, pages and indexes."""

_Outcome = TypeVar("_Outcome")


class ObstoreBucket:
    """`store` makes no attempt but the first one: `headrace.objects.opening` sets it up."""

    def __init__(self, store: AnyStore, uploads: S3Uploads | None = None) -> None:
        """`uploads`: where the store's own client tells nothing of them."""
        self._store = store
        self._uploads = uploads
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="object-store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def get(self, key: str, *, deadline_seconds: float) -> GetOutcome:
        async def get() -> GetOutcome:
            try:
                result = await obstore.get_async(self._store, key)
                if result.meta["size"] > LARGEST_WHOLE_BYTES:
                    return Refused(f"it has {result.meta['size']} bytes, and nothing of ours has so many")
                data = bytes(await result.bytes_async())
            except FileNotFoundError as error:
                return _not_found(error)
            return Found(data, Tag(result.meta["e_tag"] or ""))

        return self._within(deadline_seconds, get)

    def get_range(self, key: str, start: int, length: int, *, deadline_seconds: float) -> RangeOutcome:
        async def get_range() -> RangeOutcome:
            try:
                found = await obstore.get_range_async(self._store, key, start=start, length=length)
            except FileNotFoundError as error:
                return _not_found(error)
            return Part(memoryview(found))

        return self._within(deadline_seconds, get_range)

    def put(self, key: str, data: Buffer | Iterable[Buffer], *, deadline_seconds: float) -> PutOutcome:
        async def put() -> PutOutcome:
            try:
                written = await obstore.put_async(self._store, key, data)
            except FileNotFoundError as error:
                if error.errno is not None:
                    raise  # of the pieces, which are somebody's file
                missing = _not_found(error)  # the bucket, or the upload, which somebody has aborted
                return missing if isinstance(missing, Refused) else OutcomeUnknown(_reason(error))
            return Done(_tag(written))

        return self._within(deadline_seconds, put)

    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        async def put_if() -> ConditionalOutcome:
            mode: Any = "create" if isinstance(expected, Absent) else {"e_tag": expected}
            try:
                written = await obstore.put_async(self._store, key, data, mode=mode, use_multipart=False)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileNotFoundError) as error:
                # Amazon's store says 404 of If-Match where nothing is.
                missing = _not_found(error)
                return missing if isinstance(missing, Refused) else LostRace()
            return Done(_tag(written))

        return self._within(deadline_seconds, put_if)

    def delete(self, key: str, *, deadline_seconds: float) -> DeleteOutcome:
        async def delete() -> DeleteOutcome:
            try:
                await obstore.delete_async(self._store, key)
            except FileNotFoundError as error:
                missing = _not_found(error)
                return missing if isinstance(missing, Refused) else Done()
            return Done()

        return self._within(deadline_seconds, delete)

    def list(self, prefix: str, *, deadline_seconds: float) -> ListOutcome:
        async def listed() -> ListOutcome:
            objects: list[ObjectEntry] = []
            async for some in obstore.list(self._store, prefix or None, chunk_size=_LISTED_AT_ONCE):
                objects += [
                    ObjectEntry(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1000))
                    for meta in some
                ]
            return Listing(sorted(objects, key=lambda each: each.key))

        return self._within(deadline_seconds, listed)

    def partial_uploads(self, prefix: str, *, deadline_seconds: float) -> UploadsOutcome:
        return [] if self._uploads is None else self._uploads.list(prefix, deadline_seconds)

    def abort_upload(self, upload: PartialUpload, *, deadline_seconds: float) -> DeleteOutcome:
        return Done() if self._uploads is None else self._uploads.abort(upload, deadline_seconds)

    def _within(
        self, deadline_seconds: float, call: Callable[[], Awaitable[_Outcome]]
    ) -> _Outcome | OutcomeUnknown | Refused:
        async def bounded() -> _Outcome | OutcomeUnknown | Refused:
            try:
                async with asyncio.timeout(deadline_seconds):
                    return await call()
            except FileNotFoundError as error:
                if error.errno is not None:
                    raise  # of the pieces, which are somebody's file
                return Refused(_reason(error))
            except TimeoutError:
                return OutcomeUnknown(f"no answer within {deadline_seconds:g} s")
            except _REFUSALS as error:
                return Refused(_reason(error))
            except exceptions.BaseError as error:
                return Refused(_reason(error)) if _NO.search(str(error)) else OutcomeUnknown(_reason(error))

        return asyncio.run_coroutine_threadsafe(bounded(), self._loop).result()


def _not_found(error: Exception) -> Absent | Refused:
    """Only a store that says so in words has no such object. 404 is said of a bucket with the wrong name too,
    of a user that is not known (versitygw), and by a web server that is no store: unknown is not empty."""
    text = str(error)
    said = _SAID.search(text)
    if _BY_HTTP not in text or (said is not None and said.group("code") in _NOTHING_THERE):
        return ABSENT
    return Refused(_reason(error))


def _tag(written: Any) -> Tag | None:
    tag = written["e_tag"]
    return None if tag is None else Tag(tag)


def _reason(error: Exception) -> str:
    """What the store said, without what obstore knows about itself."""
    text = str(error).partition("\n\nDebug source")[0]
    said = _SAID.search(text)
    if said is None:
        return " ".join(text.split())
    return ": ".join(part for part in said.group("status", "code", "text") if part)
