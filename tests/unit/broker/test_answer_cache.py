"""A cached answer is never older than the metadata, and each asker gets its own correlation id."""

from __future__ import annotations

import struct

from headrace.broker.requests.answer_cache import MAX_ANSWER_BYTES, MAX_ENTRIES, AnswerCache, Question
from headrace.core.memory import MemoryShare
from headrace.network.response import DelayedResponse

FRAME = struct.pack(">ii", 9, 7) + b"topics"


def test_an_answer_comes_back_with_the_askers_correlation_id() -> None:
    cache = AnswerCache()
    question = Question(9, "PLAINTEXT", -1, b"all")
    assert cache.get(question, 5, 1) is None
    cache.put(question, 5, FRAME)
    assert cache.get(question, 5, 42) == struct.pack(">ii", 9, 42) + b"topics"


def test_any_change_of_the_metadata_forgets_everything() -> None:
    cache = AnswerCache()
    question = Question(9, "PLAINTEXT", -1, b"all")
    cache.get(question, 5, 1)
    cache.put(question, 5, FRAME)
    assert cache.get(question, 6, 1) is None
    cache.put(question, 5, FRAME)
    assert cache.get(question, 6, 1) is None, "an answer from before the change must not be kept"


def test_it_can_be_told_to_forget() -> None:
    cache = AnswerCache()
    question = Question(9, "PLAINTEXT", -1, b"all")
    cache.get(question, 5, 1)
    cache.put(question, 5, FRAME)
    cache.clear()
    assert cache.get(question, 5, 1) is None
    cache.put(question, 5, FRAME)
    assert cache.get(question, 5, 1) is not None


def test_listener_and_version_are_part_of_the_question() -> None:
    cache = AnswerCache()
    cache.get(Question(9, "INSIDE", -1, b"all"), 5, 1)
    cache.put(Question(9, "INSIDE", -1, b"all"), 5, FRAME)
    assert cache.get(Question(9, "OUTSIDE", -1, b"all"), 5, 1) is None
    assert cache.get(Question(8, "INSIDE", -1, b"all"), 5, 1) is None


def test_it_holds_a_bounded_number_of_bounded_answers() -> None:
    cache = AnswerCache()
    first = Question(9, "PLAINTEXT", -1, b"0")
    cache.get(first, 5, 1)
    for number in range(MAX_ENTRIES + 1):
        cache.put(Question(9, "PLAINTEXT", -1, str(number).encode()), 5, FRAME)
    assert cache.get(first, 5, 1) is None
    large = Question(9, "PLAINTEXT", -1, b"large")
    cache.put(large, 5, bytes(MAX_ANSWER_BYTES + 1))
    assert cache.get(large, 5, 1) is None


def test_an_answer_that_comes_later_is_kept_as_well() -> None:
    """A thousand partitions are encoded in slices: each client that asked paid for it anew."""
    cache = AnswerCache()
    question = Question(9, "PLAINTEXT", -1, b"all")
    cache.get(question, 5, 1)
    encoded = DelayedResponse()
    answer = cache.kept_later(question, 5, encoded)
    encoded.complete([FRAME[:8], FRAME[8:]])
    assert answer.parts == [FRAME[:8], FRAME[8:]]
    assert cache.get(question, 5, 42) == struct.pack(">ii", 9, 42) + b"topics"


def test_an_answer_that_comes_after_a_change_is_not_kept() -> None:
    cache = AnswerCache()
    question = Question(9, "PLAINTEXT", -1, b"all")
    cache.get(question, 5, 1)
    encoded = DelayedResponse()
    answer = cache.kept_later(question, 5, encoded)
    cache.get(question, 6, 1)
    encoded.complete([FRAME])
    assert answer.parts == [FRAME]
    assert cache.get(question, 6, 1) is None


def test_an_answer_that_comes_after_it_was_told_to_forget_is_not_kept() -> None:
    cache = AnswerCache()
    question = Question(9, "PLAINTEXT", -1, b"all")
    cache.get(question, 5, 1)
    encoded = DelayedResponse()
    cache.kept_later(question, 5, encoded)
    cache.clear()
    cache.get(question, 5, 1)
    encoded.complete([FRAME])
    assert cache.get(question, 5, 1) is None


def test_whoever_gives_up_an_answer_ends_the_work_for_it() -> None:
    cache = AnswerCache()
    encoded = DelayedResponse()
    cache.kept_later(Question(9, "PLAINTEXT", -1, b"all"), 5, encoded).abandon()
    assert encoded.is_abandoned


def test_what_is_kept_is_counted_and_bounded() -> None:
    share = MemoryShare("cached answers", 100_000)
    cache = AnswerCache(share)
    cache.get(Question(1, "", -1, b""), 7, 0)
    for number in range(50):
        cache.put(Question(1, "", -1, b"%d" % number), 7, bytes(10_000))
        assert 0 < share.used_bytes <= share.limit_bytes
    assert cache.get(Question(1, "", -1, b"49"), 7, 0) is not None
    assert cache.get(Question(1, "", -1, b"30"), 7, 0) is None
    before = share.used_bytes
    cache.put(Question(1, "", -1, b"49"), 7, bytes(10_000))
    assert share.used_bytes == before, "the same answer once more takes the place of the other"
    cache.get(Question(1, "", -1, b""), 8, 0)
    assert share.used_bytes == 0
