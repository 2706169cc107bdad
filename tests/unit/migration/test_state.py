from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.client.errors import ClientFailure
from headrace.migration import order, state_file
from headrace.migration.state import (
    Cutover,
    MigratedTopic,
    Migration,
    Proof,
    SourceCluster,
    Stage,
    TargetCluster,
    decoded,
    encoded,
)

PROOF = Proof(is_whole=True, partitions=1, records=2, bytes=3, differences=0, at="2026-11-19T00:00:00+00:00")


def migration() -> Migration:
    return Migration(
        SourceCluster("there:9092", None, None, "there-id"),
        TargetCluster("here:9092", "here-id"),
        {"orders": MigratedTopic("9401487b-8399-49e2-b9d5-6741644f097b", 3, 100)},
        ["*"],
    )


def linked() -> Migration:
    made = migration()
    made.topics["orders"].was_made = True
    return made


def test_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    made = linked()
    made.proof, made.throttle = PROOF, 5
    made.cutover = Cutover(
        Stage.DRAINING, [[2, "orders", 3, "User:*", "*", 4, 2]], 7, ["till"], {"orders": [1]}
    )
    path = tmp_path / "migration.json"
    state_file.write(path, made)
    assert state_file.read(path) == made


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"version": 1}', b'{"version": 1, "source": 3}'])
def test_a_file_of_something_else_is_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(ClientFailure, match="no state of a migration"):
        decoded(data, "some.json")


def test_a_file_of_a_later_version_is_refused() -> None:
    data = encoded(migration()).replace(b'"version": 1', b'"version": 2')
    with pytest.raises(ClientFailure, match="version 2"):
        decoded(data, "some.json")


def test_two_commands_at_once_do_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "migration.json"
    with (
        state_file.held(path),
        pytest.raises(ClientFailure, match="another command works"),
        state_file.held(path),
    ):
        pass
    with state_file.held(path):
        pass


def test_no_file_says_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(ClientFailure, match="there is no"):
        state_file.read(tmp_path / "migration.json")


@pytest.mark.parametrize(
    "check",
    [
        order.check_prove,
        order.check_groups,
        lambda made: order.check_cutover(made, is_unproven_allowed=True, needs_groups=False),
    ],
)
def test_nothing_comes_before_the_link(check: Callable[[Migration], None]) -> None:
    with pytest.raises(ClientFailure, match="not linked yet: orders"):
        check(migration())
    check(linked())


def test_the_cutover_wants_a_proof_without_differences_and_the_groups() -> None:
    made = linked()
    with pytest.raises(ClientFailure, match="compared"):
        order.check_cutover(made, is_unproven_allowed=False, needs_groups=True)
    made.proof = Proof(True, 1, 2, 3, 1, "")
    with pytest.raises(ClientFailure, match="1 differences"):
        order.check_cutover(made, is_unproven_allowed=True, needs_groups=True)
    made.proof = PROOF
    with pytest.raises(ClientFailure, match="offsets of groups"):
        order.check_cutover(made, is_unproven_allowed=False, needs_groups=True)
    made.carries_groups = True
    order.check_cutover(made, is_unproven_allowed=False, needs_groups=True)


@pytest.mark.parametrize("stage", [Stage.PROMOTING, Stage.DONE])
def test_nothing_leads_back_from_the_promotion(stage: Stage) -> None:
    made = linked()
    made.cutover.stage = stage
    for check in (
        order.check_link,
        order.check_link_undo,
        order.check_groups_undo,
        order.check_cutover_undo,
    ):
        with pytest.raises(ClientFailure, match="promoted"):
            check(made)
    order.check_cutover(made, is_unproven_allowed=False, needs_groups=True)


def test_a_fence_is_taken_back_before_the_copies() -> None:
    made = linked()
    made.cutover.stage = Stage.DRAINING
    with pytest.raises(ClientFailure, match="cutover has begun"):
        order.check_link_undo(made)
    order.check_cutover_undo(made)


def test_a_plan_does_not_replace_what_has_begun() -> None:
    order.check_plan(None)
    order.check_plan(migration())
    with pytest.raises(ClientFailure, match="has begun"):
        order.check_plan(linked())


def test_each_state_has_a_next_step() -> None:
    made = migration()
    said = [order.next_step(made)]
    made.topics["orders"].was_made = True
    said.append(order.next_step(made))
    made.proof = PROOF
    said.append(order.next_step(made))
    made.carries_groups = True
    said.append(order.next_step(made))
    made.cutover.stage = Stage.FENCING
    said.append(order.next_step(made))
    made.cutover.stage = Stage.DONE
    said.append(order.next_step(made))
    words = ["link", "prove", "groups", "cutover", "goes on", "report"]
    assert [word in text for word, text in zip(words, said, strict=True)] == [True] * 6
