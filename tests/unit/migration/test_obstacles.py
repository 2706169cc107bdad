from __future__ import annotations

from uuid import UUID

import pytest

from headrace.client.errors import ClientFailure
from headrace.client.group_offsets import Committed
from headrace.client.links import SourceTopic
from headrace.client.transactions import ListedTransaction
from headrace.core.ids import TopicPartition
from headrace.migration.fence import as_list, from_list, rules_for
from headrace.migration.group_plan import to_commit
from headrace.migration.obstacles import judge
from headrace.migration.standing import Standing, behind
from headrace.migration.survey import Rules, Survey, SurveyedGroup, SurveyedTopic
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType


def topic(name: str, *, taken: str | None = None, left_out: tuple[str, ...] = ()) -> SurveyedTopic:
    source = SourceTopic(name, UUID(int=5), "there", 3, {}, list(left_out), ["min.insync.replicas=2"])
    return SurveyedTopic(source, 1000, taken)


ORDERS = Survey(
    "there", "here", 18, [topic("orders")], [], [], [], [], [], Rules([], None), Rules([], None), 1, None
)


def rule(name: str, permission: Permission = Permission.ALLOW) -> AclRule:
    return AclRule(
        ResourceType.TOPIC, name, PatternType.LITERAL, "User:alice", "*", Operation.READ, permission
    )


def forbidding(survey: Survey) -> list[str]:
    return [finding.text for finding in judge(survey) if finding.forbids]


def notes(survey: Survey) -> str:
    return "\n".join(f"{finding.subject}: {finding.text}" for finding in judge(survey) if not finding.forbids)


def test_nothing_stands_in_the_way_of_an_ordinary_topic() -> None:
    assert forbidding(ORDERS) == []
    assert "min.insync.replicas=2" in notes(ORDERS)


@pytest.mark.parametrize(
    ("survey", "said"),
    [
        (ORDERS._replace(target_cluster_id="there"), "the same cluster"),
        (ORDERS._replace(fetch_version=12), "links need 13"),
        (ORDERS._replace(unmatched=["bils"]), "no topic that 'bils' matches"),
        (ORDERS._replace(topics=[], internal=["__consumer_offsets"]), "nothing to migrate"),
        (
            ORDERS._replace(topics=[topic("orders", taken="it exists")]),
            "cannot be made at the target: it exists",
        ),
        (ORDERS._replace(usable_bytes=999), "the copies need"),
        (
            ORDERS._replace(topics=[topic("app-store-changelog")], others=["app-by-key-repartition"]),
            "is left out",
        ),
    ],
)
def test_what_stands_in_the_way_is_said(survey: Survey, said: str) -> None:
    (text,) = forbidding(survey)
    assert said in text


def test_what_one_should_know_is_said() -> None:
    survey = ORDERS._replace(
        topics=[topic("orders", left_out=("remote.storage.enable", "strange.setting"))],
        internal=["__consumer_offsets"],
        groups=[
            SurveyedGroup("away", "classic", "Stable", 3, "Stable"),
            SurveyedGroup("known", "classic", "Empty", 3, "Empty"),
            SurveyedGroup("sharing", "share", "Stable", 0, None),
        ],
        transactions=[ListedTransaction("till", 1, "Ongoing", 1)],
        rules_there=Rules([rule("orders"), rule("others")], None),
    )
    said = notes(survey)
    for text in (
        "topic __consumer_offsets: it belongs to the brokers",
        "tiered",
        "strange.setting",
        "group away: it has members at the target",
        "group known: it is there at the target too",
        "group sharing: share groups are not carried",
        "1 transactional ids are known at the source, 1 with an open transaction: till",
        "1 of 1 rules",
    ):
        assert text in said
    assert forbidding(survey) == []


def test_a_fence_denies_writing_and_nothing_else() -> None:
    (made,) = rules_for(["orders"], [rule("orders")], everybody_may_the_rest=False)
    assert (made.operation, made.permission, made.principal) == (Operation.WRITE, Permission.DENY, "User:*")
    assert from_list(as_list(made)) == made
    assert rules_for(["orders"], [rule("orders"), made], everybody_may_the_rest=False) == []


def test_a_fence_says_that_a_topics_first_rule_takes_reading_away() -> None:
    with pytest.raises(ClientFailure, match="no rule at the source is about orders"):
        rules_for(["orders"], [rule("others")], everybody_may_the_rest=False)
    given, denied = rules_for(["orders"], [], everybody_may_the_rest=True)
    assert (given.permission, given.operation) == (Permission.ALLOW, Operation.ALL)
    assert denied.permission == Permission.DENY


PARTITION = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("there", "here", "end", "exact", "forward"),
    [
        (5, None, 10, 5, 5),
        (5, 5, 10, None, None),
        (15, None, 10, 10, 10),
        (5, 7, 10, 5, None),
        (7, 5, 10, 7, 7),
    ],
)
def test_which_offset_is_committed(
    there: int, here: int | None, end: int, exact: int | None, forward: int | None
) -> None:
    source = {PARTITION: Committed(there, -1, "")}
    known = {} if here is None else {PARTITION: Committed(here, -1, "")}
    assert to_commit(source, known, {PARTITION: end}).get(PARTITION) == exact
    assert to_commit(source, known, {PARTITION: end}, only_forward=True).get(PARTITION) == forward


def test_an_offset_of_a_partition_without_a_copy_is_left() -> None:
    assert to_commit({PARTITION: Committed(5, -1, "")}, {}, {}) == {}


def test_ends_stand_from_when_they_were_first_seen_so() -> None:
    standing = Standing()
    assert standing.look({PARTITION: 1}, 10.0)
    assert not standing.look({PARTITION: 1}, 12.0)
    assert standing.seconds(12.0) == 2.0
    assert standing.look({PARTITION: 2}, 13.0)
    assert standing.seconds(13.0) == 0.0


def test_a_partition_that_is_not_here_is_behind_though_it_is_empty() -> None:
    assert behind({PARTITION: 3}, {PARTITION: 5}) == {PARTITION: 2}
    assert behind({}, {PARTITION: 0}) == {PARTITION: 1}
    assert behind({PARTITION: 5}, {PARTITION: 5}) == {}
