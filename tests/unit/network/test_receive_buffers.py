"""What a promised frame may cost before its bytes are there."""

from __future__ import annotations

from headrace.network.buffers import FIRST_BYTES, NEW_BYTES, BufferPool

FRAME = 100 * 1024 * 1024


def test_a_promise_alone_costs_little_new_memory() -> None:
    pool = BufferPool()
    held = [pool.take(FRAME) for _ in range(100)]
    assert sum(map(len, held)) == 100 * NEW_BYTES


def test_a_buffer_grows_to_its_frame_and_keeps_what_arrived() -> None:
    pool = BufferPool()
    buffer = pool.take(3 * NEW_BYTES)
    buffer[:] = b"x" * len(buffer)
    while len(buffer) < 3 * NEW_BYTES:
        buffer = pool.grow(buffer, NEW_BYTES, 3 * NEW_BYTES)
    assert len(buffer) == 3 * NEW_BYTES
    assert buffer[:NEW_BYTES] == b"x" * NEW_BYTES


def test_a_large_buffer_is_used_again_for_the_next_large_frame() -> None:
    pool = BufferPool()
    large = bytearray(FIRST_BYTES)
    pool.give(large)
    assert pool.take(FRAME) is large


def test_beginnings_do_not_take_the_places_of_large_buffers() -> None:
    pool = BufferPool()
    for _ in range(100):
        pool.give(bytearray(NEW_BYTES))
    large = bytearray(FIRST_BYTES)
    pool.give(large)
    assert pool.grow(bytearray(NEW_BYTES), NEW_BYTES, FRAME) is large
