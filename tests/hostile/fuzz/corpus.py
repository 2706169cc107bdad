"""Inputs that are kept: one line of base64 each, in one file for each target, in order of their size."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from headrace.broker.requests.apis import APIS
from headrace.protocol.compression import Compression
from headrace.protocol.headers import LENGTH_SIZE, frame_request
from headrace.protocol.records import NewRecord, encode_batch
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
    """Where a search begins: what is kept, and something valid of every kind."""
    return [*kept(target), *_VALID.get(target, lambda: iter(()))()]


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


_VALID: Final = {"frames": _requests, "batches": _batches, "codecs": _compressed}
