"""From the bytes of a request to its message, in which each thing is mentioned once."""

from __future__ import annotations

from typing import Final

from headrace.broker.requests.api import Api
from headrace.broker.requests.duplicates import drop_duplicates
from headrace.broker.requests.request_shapes import Shape
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.limits import MAX_ELEMENTS
from headrace.protocol.message import Message
from headrace.protocol.primitives import Reader

MOST_ELEMENTS: Final = 1 << 18
"""Of all lists in one request. An element takes up to a hundred times its bytes while it is served."""
_LIST_MORE: Final = frozenset((ApiKey.ALTER_PARTITION_REASSIGNMENTS,))
"""A plan for the whole cluster comes in one request, and names each replica."""


def read_request(api: Api, frame: memoryview, at: int, version: int, shape: Shape | None) -> Message:
    """Raises ProtocolError. Bytes behind the message are let pass, as Apache Kafka does: librdkafka asks for
    the metadata of all topics with three bytes too many."""
    codec = api.codec
    if codec is None:
        most = MAX_ELEMENTS if api.internal or api.key in _LIST_MORE else MOST_ELEMENTS
        request: Message = api.request.decode(Reader(frame, at, max_elements=most), version)
    else:
        request = codec.read_request(frame, at, version)
    if shape is not None:
        drop_duplicates(request, shape)
    return request
