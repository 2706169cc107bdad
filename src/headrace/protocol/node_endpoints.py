"""The addresses of leaders that Produce and Fetch responses carry when they say that a leader has moved."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.protocol.primitives import Writer

Endpoint = tuple[int, str, int, str | None]
"""Node id, host, port, rack."""


def encode_endpoints(endpoints: Sequence[Endpoint]) -> Writer:
    writer = Writer()
    writer.compact_array_length(len(endpoints))
    for node_id, host, port, rack in endpoints:
        writer.int32(node_id)
        writer.compact_string(host)
        writer.int32(port)
        writer.compact_nullable_string(rack)
        writer.no_tags()
    return writer
