"""A record that somebody writes, and records that somebody chooses to copy."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.client.errors import ClientFailure
from headrace.console.changes.making import Actor
from headrace.console.changes.records import batches_of, record_of
from headrace.console.http import acting, sights
from headrace.console.http.app import application
from headrace.console.http.records import Source
from headrace.console.http.sights import Sight
from headrace.console.records.chosen import MOST, chosen_in
from headrace.protocol.records import NewRecord
from tests.console.made_up_changes import HOSTILE, made_up_changes
from tests.console.serving import CLUSTERS
from tests.unit.console.asking import ask, post
from tests.unit.console.test_pages import checked, nobody

PLAN = "/topics/orders/produce/plan"
WRITTEN = {"key": "k", "value": "a secret of the record"}


def test_which_records_are_chosen() -> None:
    chosen = chosen_in("0:12, 3:17-20\n0:13,0:11 3:19")
    assert (chosen.text, chosen.whole) == ("0:11-13, 3:17-20", 7)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99), st.integers(0, 9)), min_size=1, max_size=30))
def test_each_is_chosen_once_however_it_is_written(drawn: list[tuple[int, int, int]]) -> None:
    text = ",".join(f"{partition}:{first}-{first + more}" for partition, first, more in drawn)
    wanted = {(each[0], at) for each in drawn for at in range(each[1], each[1] + each[2] + 1)}
    chosen = chosen_in(text)
    found = [(each.partition, at) for each in chosen.ranges for at in range(each.first, each.last + 1)]
    assert found == sorted(wanted)
    assert chosen_in(chosen.text) == chosen
    assert chosen.whole == len(wanted)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no record is chosen"),
        ("12", "is no record"),
        ("0:1-", "is no record"),
        ("0:x", "is no record"),
        ("0:-4", "is no record"),
        ("0:\u0663", "is no record"),
        ("0:9-3", "ends before it begins"),
        (f"0:0-{MOST}", "are chosen"),
        (f"0:0-{10**17}", "are chosen"),
        (",".join(f"0:{2 * at}" for at in range(101)), "are chosen"),
    ],
)
def test_what_cannot_be_chosen_is_said(text: str, said: str) -> None:
    with pytest.raises(ClientFailure, match=said):
        chosen_in(text)


def test_a_record_as_a_form_has_it() -> None:
    made = record_of({"key": "k", "value": "two\r\nlines", "headers": "a=1\r\n\r\nb=x=y\r\n"})
    assert made == NewRecord(b"two\nlines", b"k", -1, (("a", b"1"), ("b", b"x=y")))
    assert record_of({"key": "", "value": ""}) == NewRecord(b"", None)
    assert record_of({"key": "k", "value": "not this", "no_value": "1"}) == NewRecord(None, b"k")
    made = record_of({"form": "base64", "key": "/w==", "value": "AP8\r\nA"})
    assert (made.key, made.value) == (b"\xff", b"\x00\xff\x00")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"headers": "nothing"}, "is no header"),
        ({"headers": "=x"}, "is no header"),
        ({"headers": "a=1\n" * 101}, "101 headers"),
        ({"form": "base64", "value": "?"}, "not base64"),
        ({"form": "base64", "value": "AAA"}, "not base64"),
    ],
)
def test_what_is_no_record_is_said(fields: dict[str, str], said: str) -> None:
    with pytest.raises(ClientFailure, match=said):
        record_of(fields)


@given(st.lists(st.integers(0, 700_000), max_size=20))
def test_batches_stay_small_and_in_order(lengths: list[int]) -> None:
    records = [NewRecord(bytes(length)) for length in lengths]
    batches = batches_of(records)
    assert [each for batch in batches for each in batch] == records
    for batch in batches:
        assert len(batch) == 1 or sum(len(each.value or b"") for each in batch) <= 512 * 1024
    for one, next_one in pairwise(batches):
        assert sum(len(each.value or b"") for each in [*one, next_one[0]]) > 512 * 1024


def test_what_is_in_a_record_is_shown_to_whoever_writes_it_and_kept_nowhere() -> None:
    making, obedient = made_up_changes()
    app = application(CLUSTERS["small"](), Source(nobody), making=making)
    plan = post(app, PLAN, WRITTEN)
    assert plan.status == 200, "a plan, not a change"
    assert "a secret of the record" in checked(plan)
    assert HOSTILE not in plan.text
    assert obedient.told == []
    view = post(app, f"{PLAN}?format=json", WRITTEN).json
    fields = {**dict(view["fields"]), "confirmation": view["confirmation"]}
    assert post(app, PLAN, fields).status == post(app, PLAN, fields).status == 303
    assert obedient.told == ["k=a secret of the record"]
    for path in ("/changes/1", "/changes"):
        assert "a secret of the record" not in checked(ask(app, path))
    kept = making.journal.entry(1)
    assert kept is not None
    assert "secret" not in repr(kept)
    assert kept.left is None, "a look afterwards would only find that it could be written once more"
    assert "The brokers say that it is done." in ask(app, "/changes/1").text
    assert ask(app, f"{PLAN}?key=k").status == 405, "what is in a record is not for an address"


def test_only_whoever_may_write_and_read_is_offered_it() -> None:
    making, obedient = made_up_changes()

    class Reader:
        def __init__(self, app: ASGIApp) -> None:
            self._app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            sight = Sight.unlimited()
            sight.may = lambda operation, kind, name: (  # type: ignore[method-assign]
                operation.name == "READ" or name == "clicks"
            )
            actor = Actor("User:alice", "")
            await self._app({**scope, sights.SCOPE: sight, acting.SCOPE: actor}, receive, send)

    app = application(CLUSTERS["small"](), Source(nobody), guard=Reader, making=making)
    for path in ("/topics/orders/produce", "/topics/orders/replay/plan?records=0:1&to=orders"):
        answered = ask(app, path)
        assert (answered.status, "that takes WRITE on it" in answered.text) == (403, True)
    assert post(app, PLAN, WRITTEN).status == 403
    assert post(app, "/topics/orders/replay/plan", {"records": "0:1", "to": "orders"}).status == 403
    assert ask(app, "/topics/orders/replay/plan?records=0:1&to=clicks").status == 200
    assert ask(app, "/topics/orders/replay").text.count('<option value="clicks">') == 1
    assert obedient.told == []
