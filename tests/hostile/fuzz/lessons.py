"""What others were attacked with, as far as it is bytes: one input for each lesson of docs/threats.md."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Final, NamedTuple

from headrace.protocol.headers import LENGTH_SIZE, frame_request
from headrace.protocol.messages.envelope_request import EnvelopeRequest
from headrace.protocol.records import NewRecord, encode_batch

_SEPARATOR: Final = b"\xff\xfe"
_PLAIN, _SHA_256, _BEARER = b"\x40", b"\x44", b"\x4c"
_TOKEN: Final = b"\x05"
"""How the target `sasl` is told of a handshake with a mechanism, and of a token."""
_HUGE: Final = b"\xff\xff\xff\xff\x0f"


class Lesson(NamedTuple):
    target: str
    data: bytes
    is_refused: bool = True
    """Otherwise it is taken for what it is, and gives nobody anything: the target notices who gets in."""


def _conversation(mechanism: bytes, *tokens: bytes) -> bytes:
    return _SEPARATOR.join((mechanism, *(_TOKEN + token for token in tokens), b"\x03"))


def _part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def _unsigned() -> bytes:
    claims = {"sub": "admin", "iss": "https://issuer.example", "aud": "kafka", "exp": 1 << 33}
    return (
        f"n,,\x01auth=Bearer {_part({'alg': 'none', 'kid': 'key-RS256'})}.{_part(claims)}.\x01\x01".encode()
    )


def _claiming(count: int) -> bytes:
    """A batch that says how many records it has."""
    batch = bytearray(encode_batch([NewRecord(b"v", b"k", 1)]))
    batch[23:27] = (count - 1).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big")
    return bytes(batch)


def _enveloped(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        request = EnvelopeRequest(request_data=inner, request_principal=b"", client_host_address=b"\0" * 3)
        inner = frame_request(request, 0, 7, "x")[LENGTH_SIZE:]
    return inner


LESSONS: Final = {
    "tags of a header": Lesson("frames", b"\x00\x12\x00\x03\x00\x00\x00\x01\xff\xff" + _HUGE),
    "tags of a body": Lesson("frames", b"\x00\x03\x00\x0c\x00\x00\x00\x01\xff\xff\x00\x01\x00\x00" + _HUGE),
    "elements of an array": Lesson(
        "frames", b"\x00\x03\x00\x0c\x00\x00\x00\x01\xff\xff\x00" + _HUGE + bytes(50)
    ),
    "elements of an old array": Lesson(
        "frames", b"\x00\x03\x00\x01\x00\x00\x00\x01\xff\xff\x7f\xff\xff\xff" + bytes(50)
    ),
    "partitions of a produce": Lesson(
        "frames",
        b"\x00\x00\x00\x0b\x00\x00\x00\x01\xff\xff\x00\x00\x00\x01\x00\x00\x00\x01" + _HUGE + bytes(50),
    ),
    "a small gzip that becomes large": Lesson("codecs", b"\x01" + gzip.compress(bytes(1 << 24), mtime=0)),
    "a size that zstd claims": Lesson(
        "codecs", b"\x04\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + bytes(8)
    ),
    "a block of snappy": Lesson(
        "codecs", b"\x02\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xff\x00"
    ),
    "a size that snappy claims": Lesson("codecs", b"\x02\xff\xff\xff\xff\x07" + bytes(10)),
    "records that a batch claims": Lesson("batches", _claiming(0x7FFFFFFF)),
    "a token that nobody has signed": Lesson("sasl", _conversation(_BEARER, _unsigned(), b"\x01"), False),
    "a proof of another exchange": Lesson(
        "sasl", _conversation(_SHA_256, b"n,,n=alice,r=x", b"c=biws,r=xother,p=" + b"QUFB" * 11), False
    ),
    "a name in place of another": Lesson("sasl", _conversation(_PLAIN, b"admin\0alice\0guess"), False),
    "a request before the proof": Lesson("sasl", b"\x03", False),
    "a principal without a type": Lesson("names", b"\x04\0\0\x01\x06admin\0\0"),
    "a principal that is too long": Lesson("names", b"\x04\0\0" + bytes(5000)),
    "envelopes in envelopes": Lesson("frames", _enveloped(50), False),
    "no keys": Lesson("key_sets", b'{"keys": []}'),
    "a handshake without an end": Lesson("tls", b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(2000), False),
}
