"""Inputs that are kept: one line of base64 each, in one file for each target, in order of their size."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from headrace.broker.requests.apis import APIS
from headrace.protocol.compression import Compression
from headrace.protocol.headers import LENGTH_SIZE, frame_request
from headrace.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.protocol.records import NewRecord, encode_batch
from tests.hostile.fuzz.lessons import LESSONS
from tests.property.drawn_messages import DrawnReader

_HERE: Final = Path(__file__).parents[1] / "corpus"


def kept(target: str) -> list[bytes]:
    path = _HERE / f"{target}.txt"
    return [base64.b64decode(line) for line in path.read_text().split()] if path.exists() else []


def keep(target: str, inputs: Iterable[bytes]) -> None:
    _HERE.mkdir(exist_ok=True)
    found = sorted({*inputs}, key=lambda each: (len(each), each))
    (_HERE / f"{target}.txt").write_text("".join(f"{base64.b64encode(each).decode()}\n" for each in found))


def first(target: str) -> list[bytes]:
    """Where a search begins: what is kept, what others were attacked with, and something valid of every
    kind."""
    lessons = (each.data for each in LESSONS.values() if each.target == target)
    return [*kept(target), *lessons, *_VALID.get(target, lambda: iter(()))()]


def _requests() -> Iterator[bytes]:
    """Every API in every version that is served."""
    for api in APIS:
        for version in range(max(api.lowest, api.request.MIN_VERSION), api.highest + 1):
            for source in (b"", bytes(range(1, 40)), b"\x02\x03" * 30):
                reader = DrawnReader(source, modest=True)
                request = api.request.decode(reader, version)  # type: ignore[arg-type]  # has every method of a Reader
                yield frame_request(request, version, 7, "fuzz")[LENGTH_SIZE:]


def _batches() -> Iterator[bytes]:
    some = [NewRecord(b"v%d" % number, b"k", 1_700_000_000_000, (("h", b"x"),)) for number in range(3)]
    for codec in Compression:
        yield bytes(encode_batch(some, compression=codec))


def _compressed() -> Iterator[bytes]:
    for number, batch in enumerate(_batches()):
        yield bytes([number]) + batch[61:]


def _conversations() -> Iterator[bytes]:
    """SASL as clients begin it: the handshake, then a token or two."""
    separator = b"\xff\xfe"
    yield separator.join((b"\x40", b"\x05\0alice\0wrong"))
    for mechanism in (b"\x44", b"\x48"):
        final = b"\x05c=biws,r=nonceserver-nonce,p=" + b"QUFB" * 11
        yield separator.join((mechanism, b"\x05n,,n=alice,r=nonce", final))
    yield separator.join((b"\x4c", b"\x05n,,\x01auth=Bearer e30.e30.e30\x01\x01", b"\x05\x01"))
    yield separator.join((b"\x00", b"\x02\0alice\0wrong", b"\x03"))


def _names() -> Iterator[bytes]:
    yield b"\x00" + bytes.fromhex("3020301ea003020102020101300506032b6570300030003000300030000300")
    yield b"\x01" + bytes.fromhex("3010310e300c06035504030c05616c696365")
    yield b"\x02RULE:^CN=(.*?),.*$/$1/L,DEFAULT\nCN=alice,O=x"
    yield b'\x03org.Module required username="a" password="b c";'
    yield b"\x04\0\0\x05User\x06alice\0\0"
    yield b"\x05" + bytes([127, 0, 0, 1])


def _filters() -> Iterator[bytes]:
    described = DescribeAclsRequest(
        resource_type_filter=2, resource_name_filter="orders", pattern_type_filter=2, principal_filter=None,
        host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    removed = DeleteAclsRequest(
        filters=[DeleteAclsFilter(resource_type_filter=2, resource_name_filter=None, pattern_type_filter=1,
                                  principal_filter=None, host_filter="*", operation=3, permission_type=3)]
    )  # fmt: skip
    for number in range(3):
        yield bytes([0x80 | (128 + number) % 3 | number]) + described.to_bytes(1 + (0x80 | number) % 3)
        yield bytes([number]) + removed.to_bytes(1 + number)


def _key_sets() -> Iterator[bytes]:
    point = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"  # of RFC 8037
    yield json.dumps({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": point}]}).encode()


def _records() -> Iterator[bytes]:
    """The first message of a client's handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    yield outgoing.read()


_VALID: Final = {
    "frames": _requests,
    "batches": _batches,
    "codecs": _compressed,
    "sasl": _conversations,
    "names": _names,
    "acl_filters": _filters,
    "key_sets": _key_sets,
    "tls": _records,
}
