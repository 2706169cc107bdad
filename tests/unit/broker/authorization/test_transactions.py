"""Transactions: all partitions or none, and internal topics never."""

from __future__ import annotations

from headrace.broker.authorization.guard import ALLOWED
from headrace.broker.authorization.needed_rights import Right
from headrace.broker.authorization.transactions import init_producer_id
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.security.acl import AclRule, Operation, ResourceType
from tests.unit.broker.authorization.realm import EVERYTHING, OPEN, SHUT, Realm, allow, on_topic, rights_by

X = ResourceType.TRANSACTIONAL_ID


def add(realm: Realm, rules: list[AclRule], *topics: str) -> dict[str, int]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=OPEN,
        v3_and_below_producer_id=4_000_000,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in topics],
    )
    answer = realm.ask(request, 3, rights_by(rules))
    rows = answer.results_by_topic_v3_and_below
    return {row.name: row.results_by_partition[0].partition_error_code for row in rows}


def test_one_denied_partition_keeps_the_others_out(realm: Realm) -> None:
    rules = [allow(Right(Operation.WRITE, X), OPEN), *on_topic(Operation.WRITE, OPEN, "nowhere-at-all")]
    assert add(realm, rules, OPEN, SHUT, "nowhere-at-all") == {OPEN: 55, SHUT: 29, "nowhere-at-all": 3}


def test_nobody_adds_internal_topics(realm: Realm) -> None:
    assert add(realm, EVERYTHING, OPEN, "__consumer_offsets", "__transaction_state") == {
        OPEN: 55,
        "__consumer_offsets": 29,
        "__transaction_state": 29,
    }


def test_two_phase_commit_is_a_right_of_its_own(realm: Realm) -> None:
    writes = allow(Right(Operation.WRITE, X), OPEN)
    commits = allow(Right(Operation.TWO_PHASE_COMMIT, X), OPEN)
    for rules, two_phase, code in (
        ([writes], False, 0),
        ([writes], True, 53),
        ([commits], True, 53),
        ([writes, commits], True, 0),
    ):
        request = InitProducerIdRequest(transactional_id=OPEN, enable2_pc=two_phase)
        rights = rights_by(rules)
        verdict = init_producer_id(realm.context, rights, request, realm.call(6, rights))
        if code:
            assert isinstance(verdict, InitProducerIdResponse)
            assert (verdict.error_code, verdict.producer_id, verdict.producer_epoch) == (code, -1, -1)
        else:
            assert verdict is ALLOWED
