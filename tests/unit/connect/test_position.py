"""How far a source is."""

from __future__ import annotations

import pytest

from headrace.connect.position import NOWHERE, BadPosition, altered, changes_of, position_of

FILE = {"filename": "/data/a.txt"}


def test_a_partition_that_has_not_begun_has_no_offset() -> None:
    assert NOWHERE.offset(FILE) is None
    assert not NOWHERE


def test_moving_leaves_the_old_position_as_it_was() -> None:
    before = NOWHERE.moved(FILE, {"position": 1})
    after = before.moved(FILE, {"position": 2})
    assert (before.offset(FILE), after.offset(FILE)) == ({"position": 1}, {"position": 2})


def test_the_order_of_members_does_not_matter() -> None:
    position = NOWHERE.moved({"a": 1, "b": 2}, {"at": 3})
    assert position.offset({"b": 2, "a": 1}) == {"at": 3}


def test_what_is_written_is_read_again() -> None:
    position = NOWHERE.moved(FILE, {"position": 7}).moved({"table": "öl"}, {"id": None})
    assert position_of(position.text()) == position
    assert position_of(None) == NOWHERE


def test_the_document_is_that_of_kafka_connect() -> None:
    assert NOWHERE.moved(FILE, {"position": 7}).document() == {
        "offsets": [{"partition": FILE, "offset": {"position": 7}}]
    }


def test_a_change_to_null_takes_a_partition_out() -> None:
    position = NOWHERE.moved(FILE, {"position": 7}).moved({"t": 1}, {"id": 2})
    changes = changes_of({"offsets": [{"partition": FILE, "offset": None}]})
    assert list(altered(position, changes)) == [({"t": 1}, {"id": 2})]


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"offsets": 3}, {"offsets": [3]}, {"offsets": [{"partition": 1, "offset": {}}]}],
)
def test_what_is_no_position_is_refused(document: object) -> None:
    with pytest.raises(BadPosition):
        changes_of(document)
