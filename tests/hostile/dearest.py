"""Searches for the dearest valid request of each API: what it takes of one turn of the loop, and of memory.

    python -m tests.hostile.dearest [--bytes 2000000] [API ...]

prints a table for docs/security.md.
"""

from __future__ import annotations

import argparse
import resource
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from headrace.broker.requests.api import Api
from headrace.broker.requests.apis import APIS
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.testing.cluster import Cluster
from tests.hostile.stuffed import Stuffing, stuffed, stuffings
from tests.loop_turns import turns_of
from tests.wire import Wire

LONGEST_MS: Final = 50.0
TOPICS: Final = [f"topic-{number}" for number in range(100)]
PATIENCE: Final = 5.0
"""Some answers wait for others, or for a time that the request says. The work on the loop is done by then."""
_WITHOUT: Final = frozenset({ApiKey.PRODUCE})  # its records have cases of their own: tests/integration


class Found(NamedTuple):
    api: str
    version: int
    stuffing: str
    request_bytes: int
    turn_ms: float
    answer_bytes: int | None
    """None where the connection was closed, 0 where the answer waits for something."""
    more_memory_mb: float


@contextmanager
def target() -> Iterator[Cluster]:
    """A broker with a hundred topics."""
    with Cluster() as cluster:
        with Wire(int(cluster.bootstrap.rpartition(":")[2]), timeout=120) as wire:
            topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
            wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7, CreateTopicsResponse)
        yield cluster


def connected(cluster: Cluster, patience: float) -> Wire:
    return Wire(int(cluster.bootstrap.rpartition(":")[2]), timeout=patience)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def send(
    cluster: Cluster, api_key: int, version: int, body: bytes, patience: float
) -> tuple[float, int | None]:
    """The longest turn, and the size of the answer. A coordinator that is being loaded, or a broker that
    closes the connection, has answered as well."""
    with turns_of(cluster) as turns, connected(cluster, patience) as wire:
        try:
            wire.send_body(api_key, version, body)
            answer: int | None = len(wire.receive_frame())
        except TimeoutError:
            answer = 0
        except (EOFError, ConnectionError):
            answer = None
    return turns.longest_ms, answer


def search(
    cluster: Cluster,
    api: Api,
    most_bytes: int,
    versions: Iterable[int],
    tried: Iterable[Stuffing] | None = None,
    patience: float = PATIENCE,
) -> Iterator[Found]:
    for version in versions:
        for stuffing in stuffings(most_bytes // 8) if tried is None else tried:
            found = largest(cluster, api, version, stuffing, most_bytes, patience)
            if found is not None:
                yield found


def largest(
    cluster: Cluster, api: Api, version: int, stuffing: Stuffing, most_bytes: int, patience: float
) -> Found | None:
    """The largest request that is not refused for its size: by halves, from the largest that may be made."""
    before, found = peak_mb(), None
    while most_bytes >= 1000:
        shorter = stuffing._replace(counts=tuple(min(each, most_bytes // 8) for each in stuffing.counts))
        try:
            body = stuffed(api.request, version, shorter, TOPICS, most_bytes).to_bytes(version)
        except (ValueError, struct.error, TypeError):
            return found  # no such value in this version
        turn_ms, answer = send(cluster, int(api.key), version, body, patience)
        if turn_ms > LONGEST_MS:
            # The request's own cost is there each time; a page fault or a collection is not.
            turn_ms = min(turn_ms, send(cluster, int(api.key), version, body, patience)[0])
        more = peak_mb() - before
        if found is None or turn_ms > found.turn_ms:
            found = Found(api.key.name, version, stuffing.label, len(body), turn_ms, answer, more)
        if answer is not None:
            return found
        most_bytes //= 2
    return found


def searched() -> list[Api]:
    return [api for api in APIS if not api.internal and api.key not in _WITHOUT]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bytes", type=int, default=2_000_000)
    options.add_argument("--all-versions", action="store_true")
    options.add_argument("apis", nargs="*", metavar="API")
    given = options.parse_args()
    print("| API | dearest request found | bytes | longest turn, ms | answer, bytes | more memory, MB |")
    print("|---|---|--:|--:|--:|--:|")
    for api in searched():
        if given.apis and api.key.name not in given.apis:
            continue
        lowest = max(api.lowest, api.request.MIN_VERSION)
        versions = range(lowest, api.highest + 1) if given.all_versions else (api.highest,)
        with target() as cluster:
            found = list(search(cluster, api, given.bytes, versions))
        worst = max(found, key=lambda each: each.turn_ms)
        memory = max(each.more_memory_mb for each in found)
        answer = "closed" if worst.answer_bytes is None else f"{worst.answer_bytes:,}"
        print(
            f"| {worst.api} {worst.version} | {worst.stuffing} | {worst.request_bytes:,} "
            f"| {worst.turn_ms:.1f} | {answer} | {memory:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
