"""Connectors are spread evenly, little is moved, and nothing is run twice by workers that live."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.assignment import assign

MEMBERS = st.sets(st.sampled_from("ABCDE"), min_size=1)
NAMES = st.sets(st.integers(0, 30).map(str))


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, list[str]], set[str]]:
    """Members with what they claim: also what is gone, and what two of them claim."""
    members, connectors = draw(MEMBERS), draw(NAMES)
    return {member: sorted(draw(NAMES)) for member in members}, connectors


@given(groups())
def test_nothing_is_given_twice_and_nothing_is_forgotten(
    group: tuple[dict[str, list[str]], set[str]],
) -> None:
    owned, connectors = group
    found = assign(owned, connectors)
    given = [name for names in found.given.values() for name in names]
    assert len(given) == len(set(given))
    assert set(given) | found.revoked == connectors
    assert not set(given) & found.revoked


@given(groups())
def test_what_is_taken_from_one_goes_to_nobody_in_the_same_round(
    group: tuple[dict[str, list[str]], set[str]],
) -> None:
    owned, connectors = group
    for member, names in assign(owned, connectors).given.items():
        for name in names:
            claimed = [other for other in owned if name in owned[other]]
            assert not claimed or member in claimed


@given(groups())
def test_after_a_second_round_it_is_even_and_stays_so(group: tuple[dict[str, list[str]], set[str]]) -> None:
    owned, connectors = group
    again = assign(assign(owned, connectors).given, connectors)
    counts = [len(names) for names in again.given.values()]
    assert max(counts) - min(counts) <= 1
    assert not again.revoked
    assert assign(again.given, connectors) == again
    assert all(names == sorted(names) for names in again.given.values())


def test_the_connectors_of_one_that_died_go_to_the_others_and_no_other_moves() -> None:
    names = [f"c{number}" for number in range(8)]
    before = assign({"A": [], "B": [], "C": []}, names).given
    after = assign({"A": before["A"], "B": before["B"]}, names)
    assert not after.revoked
    assert set(before["A"]) <= set(after.given["A"])
    assert set(before["B"]) <= set(after.given["B"])


def test_a_new_worker_gets_its_share_in_two_rounds() -> None:
    names = [f"c{number}" for number in range(6)]
    first = assign({"A": names, "B": []}, names)
    assert (len(first.given["A"]), first.given["B"], len(first.revoked)) == (3, [], 3)
    second = assign(first.given, names)
    assert sorted(second.given["B"]) == sorted(first.revoked)
