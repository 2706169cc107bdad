"""Requests that cannot be understood: what the broker does with the connection."""

from __future__ import annotations

import struct

from headrace.protocol.messages.api_versions_response import ApiVersionsResponse
from tests.oracle.conversation import Conversation
from tests.wire import request_frame

API_VERSIONS, METADATA = 18, 3


def run(talk: Conversation) -> None:
    _unknown_api_versions(talk)

    def after(step: str, frame: bytes) -> None:
        talk.reconnect()
        talk.wire.socket.sendall(frame)
        try:
            answer = talk.wire.receive_frame()
            talk.note(step, answered=len(answer))
        except (EOFError, ConnectionError):
            talk.note(step, connection="closed")
        except TimeoutError:
            talk.note(step, connection="silent")
        talk.reconnect()

    after("a version of Metadata that is too new", request_frame(METADATA, 99, 1, b""))
    after("an API that does not exist", request_frame(999, 0, 1, b""))
    after("a negative API", request_frame(-5, 0, 1, b""))
    after("an API between brokers", request_frame(56, 0, 1, b"\0" * 40))
    after("a body cut short", request_frame(METADATA, 9, 1, b"\x05"))
    after("an array longer than the request", request_frame(METADATA, 1, 1, struct.pack(">i", 1 << 30)))
    after("a negative length", struct.pack(">i", -1))
    after("a length of two gigabytes", struct.pack(">i", 0x7FFFFFFF) + b"x" * 100)
    after("a length of zero", struct.pack(">i", 0))
    after("a frame too short for a header", struct.pack(">i", 3) + b"abc")
    after("a client of another protocol", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    after("a TLS client", bytes.fromhex("1603010200010001fc0303") + b"\0" * 600)


def _unknown_api_versions(talk: Conversation) -> None:
    """Answered in version 0 with error 35, so that a newer client can step down."""
    correlation = talk.wire.send_body(API_VERSIONS, 99, b"\0" * 10)
    frame = talk.wire.receive_frame()
    assert struct.unpack_from(">i", frame)[0] == correlation
    answer = ApiVersionsResponse.from_bytes(frame[4:], 0)
    talk.note(
        "a version of ApiVersions that is too new", error=answer.error_code, entries=len(answer.api_keys)
    )
    for entry in answer.api_keys:
        talk.note(f"the entry for {entry.api_key}", lowest=entry.min_version, highest=entry.max_version)
