"""The guards do what the list of needed rights says: each right in turn is missing, or is all there is."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.authorization.guard import ALLOWED
from headrace.broker.authorization.needed_rights import (
    NEED_NONE,
    NEEDS,
    SERVED_FROM_FRAMES,
    Need,
    Right,
)
from headrace.broker.authorization.plain_guards import ClusterAuthorizationFailed
from headrace.broker.authorization.table import GUARDS
from headrace.broker.requests.apis import BY_KEY
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.security.acl import CLUSTER_NAME, AclRule, ResourceType
from tests.unit.broker.authorization import asked_cluster, asked_groups, asked_topics
from tests.unit.broker.authorization.questions import Codes, Question
from tests.unit.broker.authorization.realm import (
    BOTH,
    EVERYTHING,
    OPEN,
    SHUT,
    Realm,
    allow,
    api_of,
    rights_by,
)

QUESTIONS = {
    question.key: question
    for question in (
        *asked_topics.QUESTIONS,
        *asked_groups.GROUPS,
        *asked_groups.OFFSETS,
        *asked_groups.TRANSACTIONS,
        *asked_cluster.CLUSTER,
        *asked_cluster.SECURITY,
    )
}
INTERNAL = {api.key for api in BY_KEY.values() if api.internal}
ASKED_ELSEWHERE = {
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "by pattern"),  # test_groups.py
    (ApiKey.INIT_PRODUCER_ID, "two-phase commit"),  # test_transactions.py
}
WALKED = [need for need in NEEDS if need.api not in INTERNAL and (need.api, need.case) not in ASKED_ELSEWHERE]
DENIED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
ALWAYS_COMPLETED = {
    (ApiKey.CONSUMER_GROUP_DESCRIBE, ""),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "assigned topics"),
    (ApiKey.DESCRIBE_TRANSACTIONS, ""),
    (ApiKey.DESCRIBE_TRANSACTIONS, "topics of a transaction"),
    (ApiKey.LIST_TRANSACTIONS, ""),
    (ApiKey.OFFSET_FETCH, "all offsets"),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, "of others"),
}
"""What their answers show is known only when they are made."""


def name_of(need: Need) -> str:
    rights = " or ".join(f"{right.operation.name} on {right.resource_type.name}" for right in need.rights)
    return f"{need.api.name} {need.case}: {rights}"


@pytest.fixture(scope="module")
def readers(realm: Realm) -> Realm:
    """Two groups that each have a topic of their name."""
    names = [f"read-{name}" for name in BOTH]
    realm.create(*names)
    for name in names:
        joined = realm.ask(
            ConsumerGroupHeartbeatRequest(
                group_id=name,
                member_id="m",
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[name],
                topic_partitions=[],
            ),
            1,
            None,
        )
        assert joined.assignment.topic_partitions, joined
    return realm


def highest(question: Question) -> int:
    return versions_of(question)[-1]


def versions_of(question: Question) -> range:
    if question.versions is not None:
        return question.versions
    api = api_of(question.api)
    return range(api.lowest, api.highest + 1)


def is_of_cluster(need: Need) -> bool:
    """Nothing but the whole request can be denied."""
    return need.denied == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def granted(need: Need, question: Question, names: Iterable[str]) -> list[AclRule]:
    """A need's rights on these: where the cluster would do for all, the right on the resource itself."""
    return [allow(need.rights[-1], question.prefix + name) for name in names]


def granted_besides(need: Need, question: Question) -> list[AclRule]:
    """All other rights that the question needs, on both."""
    return [
        rule
        for other in NEEDS
        if other.api == need.api
        and other.case in (question.case, *question.also)
        and other.rights != need.rights
        for rule in granted(other, question, BOTH)
    ]


def ask(realm: Realm, question: Question, rules: list[AclRule], version: int) -> Codes:
    names = [question.prefix + name for name in BOTH]
    if question.api == ApiKey.DELETE_TOPICS:
        realm.create(*names)
    codes: Codes = {}
    for request in question.requests(version, *names):
        asked = SimpleNamespace(**{field: getattr(request, field) for field in request.__slots__})
        codes |= question.codes(asked, realm.ask(request, version, rights_by(rules)))
    return codes


def resource(need: Need, question: Question, name: str) -> tuple[ResourceType, str]:
    if is_of_cluster(need):
        return ResourceType.CLUSTER, CLUSTER_NAME
    return need.rights[-1].resource_type, question.prefix + name


@pytest.mark.parametrize("need", WALKED, ids=name_of)
def test_without_the_right_it_is_denied_and_the_rest_is_served(readers: Realm, need: Need) -> None:
    question = QUESTIONS[need.api, need.case]
    rules = granted_besides(need, question)
    if not is_of_cluster(need):
        rules += granted(need, question, [OPEN])
    codes = ask(readers, question, rules, highest(question))
    assert codes.get(resource(need, question, SHUT)) == need.denied
    if not is_of_cluster(need):
        assert codes[resource(need, question, OPEN)] not in DENIED


@pytest.mark.parametrize(
    ("need", "right"),
    [
        pytest.param(need, right, id=f"{name_of(need)} by {right.operation.name} {right.resource_type.name}")
        for need in WALKED
        for right in need.rights
    ],
)
def test_one_of_the_rights_is_enough(readers: Realm, need: Need, right: Right) -> None:
    question = QUESTIONS[need.api, need.case]
    rules = granted_besides(need, question)
    rules += [allow(right, question.prefix + name) for name in BOTH]
    codes = ask(readers, question, rules, highest(question))
    assert codes[resource(need, question, SHUT)] not in DENIED


@pytest.mark.parametrize(
    "question", QUESTIONS.values(), ids=lambda question: " ".join(map(str, question.key))
)
def test_in_every_version_nothing_is_served_without_rights(readers: Realm, question: Question) -> None:
    """And what is said instead can be said in that version."""
    for version in versions_of(question):
        codes = ask(readers, question, [], version)
        assert set(codes.values()) <= DENIED or question.case == "configs in the answer", version


@pytest.mark.parametrize(
    "question", QUESTIONS.values(), ids=lambda question: " ".join(map(str, question.key))
)
def test_who_may_do_everything_gets_what_the_handler_makes(readers: Realm, question: Question) -> None:
    version = highest(question)
    names = [question.prefix + name for name in BOTH]
    rights = rights_by(EVERYTHING)
    for request in question.requests(version, *names):
        before = request.to_bytes(version)
        guard = GUARDS[int(question.api)]
        verdict = guard(readers.context, rights, request, readers.call(version, rights))
        assert (verdict is ALLOWED) == (question.key not in ALWAYS_COMPLETED)
        assert request.to_bytes(version) == before


OUTLASTS_SHADOW_MODE = {
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.CREATE_DELEGATION_TOKEN,
}


def test_shadow_mode_denies_only_what_outlasts_it(readers: Realm) -> None:
    """Whoever could make rules, passwords or tokens of others then would keep them when it is enforced."""
    for question in QUESTIONS.values():
        version = highest(question)
        rights = rights_by([], mode="shadow")
        for request in question.requests(version, *(question.prefix + name for name in BOTH)):
            verdict: Any = GUARDS[int(question.api)](
                readers.context, rights, request, readers.call(version, rights)
            )
            is_open = question.key not in ALWAYS_COMPLETED and question.api not in OUTLASTS_SHADOW_MODE
            assert (verdict is ALLOWED) == is_open, question.key
            if question.api in OUTLASTS_SHADOW_MODE:
                entitled = rights_by(EVERYTHING, mode="shadow")
                call = readers.call(version, entitled)
                assert GUARDS[int(question.api)](readers.context, entitled, request, call) is ALLOWED


@pytest.mark.parametrize("key", sorted(INTERNAL), ids=lambda key: key.name)
def test_what_brokers_say_to_each_other_closes_the_connection(realm: Realm, key: ApiKey) -> None:
    call: Any = None
    with pytest.raises(ClusterAuthorizationFailed):
        GUARDS[key](realm.context, rights_by([]), None, call)
    assert GUARDS[key](realm.context, rights_by(EVERYTHING), None, call) is ALLOWED


def test_the_list_has_every_api_once_and_each_row_is_asked_about() -> None:
    listed = {need.api for need in NEEDS}
    assert listed.isdisjoint(NEED_NONE | SERVED_FROM_FRAMES)
    assert listed | NEED_NONE | SERVED_FROM_FRAMES == set(GUARDS)
    assert {(need.api, need.case) for need in WALKED} == set(QUESTIONS)
    assert {api.key for api in BY_KEY.values()} <= set(GUARDS)
