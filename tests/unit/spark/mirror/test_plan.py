"""What a mirror does next: a table of cases, without a broker."""

from __future__ import annotations

import pytest

from headrace.spark.mirror.plan import Seen, accepted, adopted, lag, making, step, stopped
from headrace.spark.mirror.position import Position, TopicPosition, position_of
from headrace.spark.mirror.problems import MirrorRefused
from headrace.spark.source.plan import View

_POSITION = Position(
    "A",
    "B",
    7,
    {"t": TopicPosition("id-t", "t", "to-t", (10, 20)), "u": TopicPosition("id-u", "u", "to-u", (5,))},
)
_LATEST = {("t", 0): 15, ("t", 1): 20, ("u", 0): 9}


def _seen(
    latest: dict[tuple[str, int], int] | None = None,
    earliest: dict[tuple[str, int], int] | None = None,
    **ids: str,
) -> Seen:
    latest = {**_LATEST, **(latest or {})}
    known = {"t": "id-t", "u": "id-u", **ids}
    view = View(latest, {**dict.fromkeys(latest, 0), **(earliest or {})}, known)
    wanted = {name: name for name in known}
    return Seen(view, wanted, {name: f"to-{name}" for name in known}, {"t": 2, "u": 1})


def test_a_step_goes_from_the_position_to_the_ends() -> None:
    found = step(_POSITION, _seen(), 1000)
    assert found.begin == {("t", 0): 10, ("u", 0): 5}
    assert found.end == {("t", 0): 15, ("u", 0): 9}
    assert found.after.offsets() == {("t", 0): 15, ("t", 1): 20, ("u", 0): 9}
    assert (found.after.number, found.stopped, found.offsets) == (8, {}, 9)
    assert position_of(found.after.text()) == found.after


def test_a_step_is_limited_and_shared() -> None:
    found = step(_POSITION, _seen({("t", 0): 10_010, ("u", 0): 30_005}), 400)
    assert found.offsets == 400
    assert found.end["u", 0] - 5 == pytest.approx(300, abs=2)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (_seen(t="another"), "topic t was deleted and made anew on the source"),
        (_seen(earliest={("t", 0): 12}), "partition 0: 2 offsets from 10 on were removed"),
        (_seen({("t", 0): 8}), "partition 0 ends at 8 on the source, but was mirrored up to 10"),
    ],
)
def test_a_topic_that_lost_records_stands_still_and_the_others_go_on(seen: Seen, said: str) -> None:
    found = step(_POSITION, seen, 1000)
    assert found.begin == {("u", 0): 5}
    assert said in found.stopped["t"]
    assert "--accept-loss" in found.stopped["t"]


def test_a_topic_that_is_gone_on_either_side_is_said() -> None:
    seen = _seen()
    del seen.view.ids["t"]  # type: ignore[attr-defined]  # a dictionary here
    assert "does not exist on the source" in stopped(_POSITION, seen)["t"]
    gone = _seen()._replace(target_ids={"u": "to-u"})
    assert "topic t of the target does not exist" in stopped(_POSITION, gone)["t"]
    anew = _seen()._replace(target_ids={"t": "another", "u": "to-u"})
    assert "topic t of the target was deleted and made anew" in stopped(_POSITION, anew)["t"]
    renamed = _seen()._replace(wanted={"t": "x.t", "u": "u"})
    assert "into x.t now" in stopped(_POSITION, renamed)["t"]


def test_a_topic_that_is_wanted_no_more_is_left_alone() -> None:
    seen = _seen(t="another")._replace(wanted={"u": "u"})
    assert stopped(_POSITION, seen._replace(view=View({("u", 0): 9}, {("u", 0): 0}, {"u": "id-u"}))) == {}


def test_who_accepts_a_loss_goes_on_behind_it_and_nowhere_else() -> None:
    removed = _seen(earliest={("t", 0): 12})
    assert accepted(_POSITION, removed.view, "earliest").topics["t"].offsets == (12, 20)
    assert accepted(_POSITION, removed.view, "latest").topics["t"].offsets == (15, 20)
    cut = _seen({("t", 0): 8})
    assert accepted(_POSITION, cut.view, "earliest").topics["t"].offsets == (8, 20)
    anew = _seen({("t", 0): 3, ("t", 1): 1}, t="another")
    fresh = accepted(_POSITION, anew.view, "earliest")
    assert fresh.topics["t"] == TopicPosition("another", "t", "to-t", (0, 0))
    assert fresh.topics["u"] == _POSITION.topics["u"]
    assert accepted(_POSITION, _seen().view, "latest") is _POSITION


def test_new_topics_are_made_grown_checked_and_adopted() -> None:
    latest = {("t", 2): 4, ("v", 0): 30, ("w", 0): 1}
    seen = _seen(latest, {("t", 2): 1}, v="id-v", w="id-w")
    seen = seen._replace(
        target_ids={"t": "to-t", "u": "to-u", "w": "to-w"}, target_partitions={"t": 2, "u": 1, "w": 1}
    )
    assert making(_POSITION, seen) == (["v"], {"t": 3}, ["w"])
    elsewhere = seen._replace(
        wanted={**seen.wanted, "w": "x.w"}, target_ids={**seen.target_ids, "x.w": "to-x"}
    )
    elsewhere = elsewhere._replace(target_partitions={**seen.target_partitions, "x.w": 0})
    assert making(_POSITION, elsewhere) == (["v"], {"t": 3, "w": 1}, ["w"]), "by the names of the source"
    made = seen._replace(
        target_ids={**seen.target_ids, "v": "to-v"}, target_partitions={"t": 3, "u": 1, "w": 1, "v": 1}
    )
    found = adopted(_POSITION, made, "latest")
    assert found["v"].offsets == (30,)
    assert found["t"].offsets == (10, 20, 1), "a new partition is read from its beginning"
    assert sorted(found) == ["t", "v", "w"]
    assert making(_POSITION.with_topics(found), made) == ([], {}, [])


def test_a_topic_that_the_target_refuses_stands_still_and_the_others_go_on() -> None:
    found = step(_POSITION, _seen(), 1000, {"t": "too large", "gone": "of no interest"})
    assert found.begin == {("u", 0): 5}
    assert found.stopped == {"t": "too large"}
    removed = step(_POSITION, _seen(earliest={("t", 0): 12}), 1000, {"t": "too large"})
    assert "were removed" in removed.stopped["t"], "what the source lost comes first: it needs a person"


def test_a_topic_that_the_target_refuses_is_neither_made_nor_adopted() -> None:
    seen = _seen({("t", 2): 4, ("v", 0): 30, ("w", 0): 1}, {("t", 2): 1}, v="id-v", w="id-w")
    there = seen._replace(
        target_ids={"t": "to-t", "u": "to-u", "w": "to-w"}, target_partitions={"t": 2, "u": 1, "w": 1}
    )
    assert making(_POSITION, there, {"v", "t"}) == ([], {}, ["w"])
    assert sorted(adopted(_POSITION, there, "earliest", {"w"})) == []
    assert sorted(adopted(_POSITION, there, "earliest")) == ["w"]


def test_lag_counts_what_is_behind_the_position() -> None:
    assert lag(_POSITION, _seen().view) == {"t": 5, "u": 4}


def test_a_note_of_somebody_else_is_refused() -> None:
    assert position_of(None) == Position()
    for text in ("{}", "no json", '{"version": 1}'):
        with pytest.raises(MirrorRefused, match="not a mirror's position"):
            position_of(text)
    with pytest.raises(MirrorRefused, match="version 2"):
        position_of('{"version": 2}')
