"""ACLs, SCRAM credentials, quotas and tokens: replayed, in snapshots, with an epoch that moves."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.controller.checkpoint import decode_checkpoint, encode_checkpoint
from headrace.controller.delta import AclChange, MetadataDelta
from headrace.controller.image import MetadataImage
from headrace.controller.operations import Result
from headrace.controller.quota_image import QuotaEntity, entity_of
from headrace.controller.replay import Replayer
from headrace.controller.security_operations import (
    NewToken,
    QuotaAlteration,
    QuotaChange,
    ScramDeletion,
    ScramUpsertion,
    TokenLifetimes,
)
from headrace.controller.security_records import acl_record, quota_record, scram_record, token_record
from headrace.controller.token_image import DelegationToken
from headrace.core.errors import CorruptLog
from headrace.protocol.message import Message
from headrace.protocol.stored.access_control_entry_record import AccessControlEntryRecord
from headrace.protocol.stored.delegation_token_record import DelegationTokenRecord
from headrace.protocol.stored.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from headrace.protocol.stored.remove_delegation_token_record import RemoveDelegationTokenRecord
from headrace.protocol.stored.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from headrace.protocol.stored.user_scram_credential_record import UserScramCredentialRecord
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_filter import AclFilter
from headrace.security.principal import user
from headrace.security.scram_credential import ScramCredential, ScramMechanism
from tests.unit.controller.cluster import Cluster, said
from tests.unit.security.drawn_rules import RULES

RULE = AclRule(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW
)
CREDENTIAL = ScramCredential(b"salt", 4096, b"stored" * 5, b"server" * 5)
TOKEN = DelegationToken("id-1", user("alice"), user("bob"), (user("carol"), user("d:e")), 1, 3, 2)
ALICE: QuotaEntity = entity_of([("user", "alice"), ("client-id", None)])
ONE, TWO = UUID(int=1), UUID(int=2)


def replayed(*records: Message) -> tuple[MetadataImage, MetadataDelta]:
    replayer, delta = Replayer(MetadataImage()), MetadataDelta()
    replayer.replay_all(records, delta)
    return replayer.image, delta


def test_an_acl_comes_and_goes_and_the_delta_says_so_in_order() -> None:
    image, delta = replayed(acl_record(ONE, RULE), RemoveAccessControlEntryRecord(id=ONE))
    assert delta.acls == [AclChange(RULE, added=True), AclChange(RULE, added=False)]
    assert len(image.acls) == 0
    assert RULE not in image.acls
    assert image.acls.epoch == 2
    assert image.acls.candidates(AclFilter(name="orders")) == []


def test_a_rule_that_is_stored_twice_goes_with_its_last_id() -> None:
    image, delta = replayed(
        acl_record(ONE, RULE), acl_record(TWO, RULE), RemoveAccessControlEntryRecord(id=ONE)
    )
    assert delta.acls == [AclChange(RULE, added=True)]
    assert RULE in image.acls
    Replayer(image).replay(RemoveAccessControlEntryRecord(id=TWO), delta)
    assert RULE not in image.acls
    assert delta.acls[-1] == AclChange(RULE, added=False)


def test_a_credential_comes_changes_and_goes() -> None:
    image, delta = replayed(
        scram_record("alice", ScramMechanism.SHA_256, ScramCredential(b"old", 4096, b"1", b"2")),
        scram_record("alice", ScramMechanism.SHA_256, CREDENTIAL),
        scram_record("alice", ScramMechanism.SHA_512, CREDENTIAL),
    )
    assert image.scram.find("alice", ScramMechanism.SHA_256) == CREDENTIAL
    assert image.scram.find("bob", ScramMechanism.SHA_256) is None
    assert (len(image.scram), image.scram.epoch, delta.scram_users) == (1, 3, {"alice"})
    replayer = Replayer(image)
    for mechanism in (1, 2):
        replayer.replay(RemoveUserScramCredentialRecord(name="alice", mechanism=mechanism), delta)
    assert image.scram.users() == []
    assert image.scram.epoch == 5


def test_a_quota_comes_changes_and_goes() -> None:
    image, delta = replayed(
        quota_record(ALICE, "producer_byte_rate", 10.0), quota_record(ALICE, "producer_byte_rate", 20.0)
    )
    assert image.quotas.of(ALICE) == {"producer_byte_rate": 20.0}
    assert (image.quotas.epoch, delta.quotas) == (2, {ALICE})
    replayer = Replayer(image)
    replayer.replay(quota_record(ALICE, "consumer_byte_rate", None), delta)
    assert image.quotas.epoch == 2, "nothing has changed"
    replayer.replay(quota_record(ALICE, "producer_byte_rate", None), delta)
    assert list(image.quotas) == []
    assert image.quotas.epoch == 3


def test_a_token_comes_changes_and_goes() -> None:
    image, delta = replayed(token_record(TOKEN), token_record(TOKEN._replace(expiry_ms=3)))
    assert image.tokens.find("id-1") == TOKEN._replace(expiry_ms=3)
    assert (image.tokens.epoch, delta.tokens) == (2, {"id-1"})
    Replayer(image).replay(RemoveDelegationTokenRecord(token_id="id-1"), delta)
    Replayer(image).replay(RemoveDelegationTokenRecord(token_id="id-1"), delta)
    assert (len(image.tokens), image.tokens.epoch) == (0, 3)


@pytest.mark.parametrize(
    "records",
    [
        [acl_record(ONE, RULE), acl_record(ONE, RULE)],
        [RemoveAccessControlEntryRecord(id=ONE)],
        [AccessControlEntryRecord(id=ONE, resource_type=2, pattern_type=3, operation=99, permission_type=2)],
        [AccessControlEntryRecord(id=ONE, resource_type=50, pattern_type=3, operation=3, permission_type=2)],
        [AccessControlEntryRecord(id=ONE, resource_type=2, pattern_type=9, operation=3, permission_type=2)],
        [AccessControlEntryRecord(id=ONE, resource_type=2, pattern_type=3, operation=3, permission_type=9)],
        [RemoveUserScramCredentialRecord(name="alice", mechanism=1)],
        [UserScramCredentialRecord(name="alice", mechanism=3)],
        [DelegationTokenRecord(token_id="id", owner="alice", requester="User:alice")],
    ],
)
def test_what_does_not_fit_stops_the_broker(records: list[Message]) -> None:
    with pytest.raises(CorruptLog):
        replayed(*records)


def test_a_checkpoint_has_all_of_it_and_is_the_same_bytes_whatever_the_order() -> None:
    records: list[Message] = [
        acl_record(ONE, RULE),
        acl_record(TWO, RULE._replace(permission=Permission.DENY)),
        scram_record("alice", ScramMechanism.SHA_512, CREDENTIAL),
        scram_record("alice", ScramMechanism.SHA_256, CREDENTIAL),
        quota_record(ALICE, "request_percentage", 12.5),
        quota_record(entity_of([("user", None)]), "producer_byte_rate", 1.0),
        quota_record(entity_of([("ip", "10.0.0.1")]), "connection_creation_rate", 5.0),
        token_record(TOKEN),
    ]
    cluster, reverse = Cluster([0]), Cluster([0])
    cluster.apply(records)
    reverse.apply(reversed(records))
    checkpoint = encode_checkpoint(cluster.image, end_offset=9, epoch=1, timestamp_ms=1)
    assert encode_checkpoint(reverse.image, end_offset=9, epoch=1, timestamp_ms=1) == checkpoint
    again = Replayer(MetadataImage())
    for group in decode_checkpoint(checkpoint):
        again.replay_all(group, MetadataDelta())
    assert said(again.image) == said(cluster.image)
    assert [each for each in records if each not in said(again.image)] == []


def test_a_delta_of_security_is_one() -> None:
    for record in (
        acl_record(ONE, RULE),
        scram_record("alice", ScramMechanism.SHA_256, CREDENTIAL),
        quota_record(ALICE, "request_percentage", 1.0),
        token_record(TOKEN),
    ):
        assert replayed(record)[1], type(record).__name__
    assert not MetadataDelta()


def test_adding_one_of_many_rules_copies_none_of_them() -> None:
    image, _ = replayed(
        *(acl_record(UUID(int=n + 1), RULE._replace(name=f"topic-{n}")) for n in range(10_000))
    )
    by_id, same = image.acls.by_id, image.acls.by_id[UUID(int=500)]
    Replayer(image).replay(acl_record(UUID(int=20_000), RULE), MetadataDelta())
    assert image.acls.by_id is by_id
    assert by_id[UUID(int=500)] is same
    assert len(image.acls.candidates(AclFilter(name="topic-7"))) == 1, "a name is looked up, not searched for"


NAMES = st.sampled_from(["a", "ab", "abc", "*", "b", "a" * 300])


@given(
    st.lists(RULES, max_size=12),
    NAMES | st.none(),
    st.sampled_from([PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED]),
)
def test_no_rule_that_a_filter_matches_is_missing_among_its_candidates(
    stored: list[AclRule], name: str | None, pattern: PatternType
) -> None:
    image, _ = replayed(*(acl_record(UUID(int=n + 1), rule) for n, rule in enumerate(stored)))
    wanted = AclFilter(name=name, pattern=pattern)
    found = [rule for _, rule in image.acls.candidates(wanted) if wanted.matches(rule)]
    assert sorted(found) == sorted(rule for rule in stored if wanted.matches(rule))


USERS = st.sampled_from(["alice", "bob"])
OPERATIONS = st.one_of(
    st.tuples(st.just("create"), st.lists(RULES, max_size=3)),
    st.tuples(st.just("delete"), st.integers(0, 5)),
    st.tuples(st.just("upsert"), USERS),
    st.tuples(st.just("drop"), USERS),
    st.tuples(st.just("quota"), USERS, st.sampled_from([1.0, 2.0, None])),
    st.tuples(st.just("token"), USERS),
    st.tuples(st.just("expire"), USERS),
)


def decided(cluster: Cluster, operation: tuple[Any, ...]) -> Result[Any]:
    machine, image = cluster.machine, cluster.image
    match operation:
        case ("create", new):
            return machine.create_acls(new)
        case ("delete", count):
            return machine.delete_acls(list(image.acls.by_id)[:count])
        case ("upsert", name):
            return machine.alter_scram_credentials([], [ScramUpsertion(name, 1, 4096, b"salt", b"p" * 32)])
        case ("drop", name):
            return machine.alter_scram_credentials([ScramDeletion(name, 1)], [])
        case ("quota", name, value):
            change = QuotaChange("producer_byte_rate", value)
            return machine.alter_client_quotas([QuotaAlteration((("user", name),), [change])])
        case ("token", name):
            return machine.create_token(NewToken(user(name)), TokenLifetimes(), 1)
        case _:
            return machine.remove_expired_tokens(2**60)


def epochs(image: MetadataImage) -> tuple[int, ...]:
    return image.acls.epoch, image.scram.epoch, image.quotas.epoch, image.tokens.epoch


@given(st.lists(OPERATIONS, max_size=12))
def test_the_log_alone_gives_the_image_and_every_change_moves_an_epoch(
    operations: list[tuple[Any, ...]],
) -> None:
    cluster = Cluster()
    for operation in operations:
        before, known = said(cluster.image), epochs(cluster.image)
        cluster.do(decided(cluster, operation))
        if said(cluster.image) != before:
            assert epochs(cluster.image) != known
    for records in (cluster.log, said(cluster.image)):
        assert said(replayed(*records)[0]) == said(cluster.image)


def test_no_secret_is_printed() -> None:
    record = scram_record("alice", ScramMechanism.SHA_256, ScramCredential(b"s", 4096, b"CANARY", b"CANARY"))
    image, _ = replayed(record)
    assert "CANARY" not in repr(record) + repr(image.scram.of("alice"))
    assert "alice" in repr(record)
