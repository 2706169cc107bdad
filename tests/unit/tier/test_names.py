"""Keys in the bucket."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.tier.names import Folder, ObjectName, TieredPartition, decode_id, encode_id, parse_name

NAME = ObjectName(1234, 5, "0123456789abcdef0123456789abcdef")
FOLDER = Folder.of("cluster", TieredPartition(UUID(int=1), 7))


def test_keys_sort_as_offsets_do() -> None:
    assert FOLDER.manifest == "cluster/AAAAAAAAAAAAAAAAAAAAAQ/7/manifest"
    assert FOLDER.records(NAME) == (
        "cluster/AAAAAAAAAAAAAAAAAAAAAQ/7/00000000000000001234-5-0123456789abcdef0123456789abcdef.log"
    )
    assert FOLDER.records(NAME) < FOLDER.records(NAME._replace(base_offset=10**6))


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1), st.uuids())
def test_a_name_is_read_as_it_was_written(base: int, epoch: int, attempt: UUID) -> None:
    name = ObjectName(base, epoch, attempt.hex)
    assert parse_name(str(name)) == name
    assert {FOLDER.name_of(key) for key in FOLDER.all_of(name)} == {name}


@given(st.uuids())
def test_an_id_is_written_as_kafka_does(topic_id: UUID) -> None:
    assert decode_id(encode_id(topic_id)) == topic_id
    assert len(encode_id(topic_id)) == 22


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 21 + "B", "A" * 23, "ä" * 22, "!" * 22])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode_id(text)


@pytest.mark.parametrize(
    "key",
    [
        FOLDER.manifest,
        "other/" + FOLDER.records(NAME),
        FOLDER.records(NAME) + ".bak",
        FOLDER.prefix + "readme.log",
        FOLDER.prefix + "below/" + str(NAME) + ".log",
        FOLDER.records(NAME).replace("-5-", "-x-"),
        FOLDER.records(NAME).upper(),
    ],
)
def test_what_no_leader_has_written_is_not_ours(key: str) -> None:
    assert FOLDER.name_of(key) is None


def test_a_topic_that_is_made_again_shares_no_key() -> None:
    again = Folder.of("cluster", TieredPartition(UUID(int=2), 7))
    assert not set(again.all_of(NAME)) & set(FOLDER.all_of(NAME))
