"""What stands before the body of a message: its length, and the header of a request or a response.

A request header has version 2 (with tagged fields) from the API's first flexible version on, and 1 before.
A response header has version 1 where the request had 2, and 0 otherwise. The one exception is the
ApiVersions response, always 0, because a client reads it before it knows what the broker speaks.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from headrace.core.ports import Buffer
from headrace.protocol.api_keys import FIRST_FLEXIBLE, ApiKey
from headrace.protocol.message import NEVER, Message
from headrace.protocol.primitives import MAX_HEADER_TAGS, ProtocolError, Reader, Writer

_LENGTH: Final = Struct(">i")
_REQUEST: Final = Struct(">hhih")  # api key, version, correlation id, length of the client id
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
LENGTH_SIZE: Final = 4
_MAX_CACHED_ID: Final = 256  # longer ones are not worth memory that a stranger could fill

_first_flexible: Final = {int(key): version for key, version in FIRST_FLEXIBLE.items()}
# An IntEnum is slow to hash; these look-ups happen for every request.


_new: Final = tuple.__new__  # a third of the time of calling the class


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def frame_length(data: Buffer, at: int, most: int) -> int:
    """The length of the frame that begins at `at`, whose first four bytes are there."""
    length: int = _LENGTH.unpack_from(data, at)[0]
    if not 0 < length <= most:
        raise ProtocolError(f"a frame of {length} bytes; 1 to {most} are allowed")
    return length


def request_header_version(api_key: int, api_version: int) -> int:
    return 2 if api_version >= _first_flexible.get(api_key, NEVER) else 1


def response_header_version(api_key: int, api_version: int) -> int:
    if api_key == _API_VERSIONS:
        return 0
    return 1 if api_version >= _first_flexible.get(api_key, NEVER) else 0


def read_request_header(view: Buffer, at: int = 0, end: int | None = None) -> tuple[RequestHeader, int]:
    """The header at `at`, and where the body begins.

    Does not judge the key or the version: of an API that is not known, only the classic part is read.
    """
    limit = len(view) if end is None else end
    after = at + 10
    if after > limit:
        raise ProtocolError(f"{limit - at} bytes cannot hold a request header")
    api_key, api_version, correlation_id, size = _REQUEST.unpack_from(view, at)
    client_id: str | None = None
    if size >= 0:
        at, after = after, after + size
        if after > limit:
            raise ProtocolError(f"a client id of {size} bytes is longer than the request")
        raw = bytes(view[at:after])
        client_id = _cached_client_id(raw) if size <= _MAX_CACHED_ID else _client_id(raw)
    elif size != -1:
        raise ProtocolError(f"a client id of {size} bytes")
    if api_version >= _first_flexible.get(api_key, NEVER):
        if after < limit and view[after] == 0:
            after += 1
        else:
            reader = Reader(view, after, limit)
            reader.skip_tags(MAX_HEADER_TAGS)
            after = reader.at
    return _new(RequestHeader, (api_key, api_version, correlation_id, client_id)), after


def _client_id(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError("the client id is not UTF-8") from error


_cached_client_id: Final = lru_cache(maxsize=1024)(_client_id)


def read_response_header(view: Buffer, api_key: int, api_version: int, at: int = 0) -> tuple[int, int]:
    """The correlation id, and where the body begins."""
    reader = Reader(view, at)
    correlation_id = reader.int32()
    if response_header_version(api_key, api_version):
        reader.skip_tags(MAX_HEADER_TAGS)
    return correlation_id, reader.at


def frame_request(request: Message, api_version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A whole frame: length, header, body."""
    writer = Writer()
    writer.buf += bytes(LENGTH_SIZE)
    writer.int16(request.API_KEY)
    writer.int16(api_version)
    writer.int32(correlation_id)
    writer.nullable_string(client_id)  # never compact, whatever the version of the header
    if request_header_version(request.API_KEY, api_version) == 2:
        writer.no_tags()
    return _seal(writer, request, api_version)


def frame_response(response: Message, api_version: int, correlation_id: int) -> bytes:
    """A whole frame: length, header, body."""
    writer = Writer()
    writer.buf += bytes(LENGTH_SIZE)
    writer.int32(correlation_id)
    if response_header_version(response.API_KEY, api_version):
        writer.no_tags()
    return _seal(writer, response, api_version)


def _seal(writer: Writer, body: Message, api_version: int) -> bytes:
    body.check_version(api_version)
    try:
        body.encode(writer, api_version)
    except struct.error as error:
        raise ValueError(f"{body.__class__.__name__}: {error}") from error
    _LENGTH.pack_into(writer.buf, 0, len(writer.buf) - LENGTH_SIZE)
    return writer.getvalue()
