"""Memory that the broker spends on its peers: one whole, and the parts of it."""

from __future__ import annotations

from headrace.config.declare import int64

_PART = " -1 takes {} % of headrace.peer.memory.bytes."


def bytes_or_default(value: int) -> str | None:
    return None if value == -1 or value > 0 else "use a number of bytes, or -1 for the default"


class MemoryProperties:
    headrace_peer_memory_bytes = int64(
        "headrace.peer.memory.bytes",
        -1,
        "Memory that the broker holds on behalf of its peers: requests, answers and state, each with its "
        "part. -1 takes a quarter of the machine's memory, or of the container's if that has less.",
        check=bytes_or_default,
    )
    headrace_unsent_answer_bytes = int64(
        "headrace.unsent.answer.bytes",
        -1,
        "Bytes of answers that peers do not read. Above it the broker closes the connections that have taken "
        "nothing for the longest time." + _PART.format(15),
        check=bytes_or_default,
    )
    headrace_fetch_session_bytes = int64(
        "headrace.fetch.session.bytes",
        -1,
        "Bytes of fetch sessions. Above it sessions are evicted, or a fetch gets none and sends all of its "
        "partitions each time." + _PART.format(10),
        check=bytes_or_default,
    )
    headrace_group_state_bytes = int64(
        "headrace.group.state.bytes",
        -1,
        "Bytes of the members of groups: ids, subscriptions, assignments. Above it a member that is new is "
        "answered COORDINATOR_NOT_AVAILABLE, and tries again." + _PART.format(15),
        check=bytes_or_default,
    )
    headrace_transaction_state_bytes = int64(
        "headrace.transaction.state.bytes",
        -1,
        "Bytes of transactional ids. Above it an id that is new is answered COORDINATOR_NOT_AVAILABLE, and "
        "tries again." + _PART.format(10),
        check=bytes_or_default,
    )
    headrace_producer_state_bytes = int64(
        "headrace.producer.state.bytes",
        -1,
        "Bytes of what partitions remember of producers. Above it silent ones are forgotten, and one that is "
        "new to a partition is answered KAFKA_STORAGE_ERROR, and tries again." + _PART.format(4),
        check=bytes_or_default,
    )
    headrace_committed_offset_bytes = int64(
        "headrace.committed.offset.bytes",
        -1,
        "Bytes of the offsets that groups have committed. Above it a group's first offset of a partition is "
        "answered COORDINATOR_NOT_AVAILABLE, and tried again." + _PART.format(4),
        check=bytes_or_default,
    )
    headrace_held_request_bytes = int64(
        "headrace.held.request.bytes",
        -1,
        "Bytes of produce requests that wait for replicas or for a disk. Above it a connection is not read "
        "while one of its requests waits." + _PART.format(1),
        check=bytes_or_default,
    )
    headrace_answer_cache_bytes = int64(
        "headrace.answer.cache.bytes",
        -1,
        "Bytes of answers to Metadata that are kept for the next who asks the same." + _PART.format(1),
        check=bytes_or_default,
    )
