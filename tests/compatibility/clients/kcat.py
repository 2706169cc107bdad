"""Debian's kcat, with the librdkafka that Debian gives it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tests.compatibility.clients.access import Access
from tests.compatibility.clients.client import NO_CODE, Client, ClientFailure, Consumed, NewRecord

#: kcat prints librdkafka's words; these are the ones that the suite provokes.
_CODES = {
    "Message size too large": 10,
    "Unknown topic or partition": 3,
    "Offset out of range": 1,
    "does not exist": 3,
}
_SECONDS = 40


def _failure(text: str) -> ClientFailure:
    for words, code in _CODES.items():
        if words in text:
            return ClientFailure(code, text)
    return ClientFailure(NO_CODE, text)


class KcatClient(Client):
    name: ClassVar[str] = "kcat"
    # What its command line cannot say, or does not tell.
    lacks: ClassVar[frozenset[str]] = frozenset(
        {"null header", "timestamp", "offsets", "code of invalid record"}
    )

    def __init__(self, bootstrap: str, access: Access | None = None) -> None:
        self._connection = ["-b", bootstrap]
        for name, value in ({} if access is None else access.for_librdkafka()).items():
            self._connection += ["-X", f"{name}={value}"]

    def _run(self, *arguments: str, data: bytes = b"", seconds: float = _SECONDS) -> bytes:
        done = subprocess.run(
            ["kcat", *self._connection, *arguments], input=data, capture_output=True, timeout=seconds
        )
        errors = done.stderr.decode(errors="replace")
        if done.returncode != 0 or "% ERROR" in errors or "Delivery failed" in errors:
            raise _failure(errors)
        return done.stdout

    def produce(
        self,
        topic: str,
        records: Sequence[NewRecord],
        *,
        partition: int = 0,
        compression: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        options = [f"acks={acks}", f"enable.idempotence={str(idempotent).lower()}", "linger.ms=20"]
        options.append(f"message.max.bytes={64 << 20}")
        common = ["-P", "-t", topic, "-p", str(partition), "-z", compression, "-Z"]
        for option in options:
            common += ["-X", option]
        # One call for each record: all records of one call have the same key and headers.
        for record in records:
            arguments = list(common)
            for name, value in record.headers:
                arguments += ["-H", f"{name}={(value or b'').decode()}"]
            self._produce_one(arguments, record)
        return []

    def _produce_one(self, arguments: list[str], record: NewRecord) -> None:
        if record.value is None:
            # Key, delimiter and nothing: by -Z an empty part is null.
            self._run(*arguments, "-K", "|", data=(record.key or b"") + b"|\n")
            return
        if record.key is not None:
            arguments = [*arguments, "-k", record.key.decode()]
        with tempfile.TemporaryDirectory() as directory:
            # A file argument is one record, whatever bytes it has.
            path = Path(directory) / "value"
            path.write_bytes(record.value)
            self._run(*arguments, str(path))

    def consume(
        self,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        at: str = "start",
        value: int = 0,
        timeout_ms: int = 10_000,
    ) -> list[Consumed]:
        where = {"start": "beginning", "end": "end", "offset": str(value), "timestamp": f"s@{value}"}[at]
        arguments = ["-C", "-q", "-t", topic, "-p", str(partition), "-o", where, "-u"]
        arguments += ["-X", "fetch.wait.max.ms=100", "-X", "auto.offset.reset=error"]
        # Sizes come first, so that keys and values may hold any byte.
        arguments += ["-f", "%o %T %K %S %h\n%k%s\n"]
        arguments += ["-c", str(count)]
        if at != "end":
            arguments.append("-e")
        return _parse(self._run(*arguments, seconds=timeout_ms / 1000 + 5))

    def metadata(self, topic: str) -> str:
        return self._run("-L", "-t", topic).decode()


def _parse(data: bytes) -> list[Consumed]:
    found: list[Consumed] = []
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        match = re.fullmatch(rb"(-?\d+) (-?\d+) (-?\d+) (-?\d+) ?(.*)", data[at:end])
        assert match is not None, data[at:end]
        offset, timestamp, key_size, value_size = (int(match[i]) for i in range(1, 5))
        at = end + 1
        key = None if key_size < 0 else data[at : at + key_size]
        at += max(key_size, 0)
        value = None if value_size < 0 else data[at : at + value_size]
        at += max(value_size, 0) + 1
        headers = tuple(
            (name.decode(), content)
            for name, _, content in (pair.partition(b"=") for pair in match[5].split(b",") if pair)
        )
        found.append(Consumed(offset, timestamp, key, value, headers))
    return found
