"""Somebody who has logged in: a conversation whose steps are named after who asks and what they may do."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any
from uuid import UUID

from headrace.core.ids import NO_TOPIC_ID
from headrace.protocol.message import Message
from headrace.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from headrace.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from headrace.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.delete_acls_response import DeleteAclsResponse
from headrace.protocol.messages.describe_acls_response import DescribeAclsResponse
from headrace.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from headrace.protocol.messages.describe_delegation_token_response import DescribeDelegationTokenResponse
from headrace.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.broker_process import BrokerProcess
from tests.oracle.authorization.brokers import ADMIN
from tests.oracle.conversation import Conversation
from tests.oracle.plain import Flat, flatten_in_order
from tests.wire import Wire

MOST_QUESTIONS = 20
A_TIME = 1
"""Stands for any moment."""
ROUGHLY_MS = 600_000


class User(Conversation):
    def __init__(self, broker: BrokerProcess, name: str) -> None:
        self.name = name
        super().__init__(broker)

    def connect(self, timeout: float) -> Wire:
        wire = super().connect(timeout)
        wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
        secret = f"\0{self.name}\0{self.name}-secret".encode()
        answer = wire.ask(SaslAuthenticateRequest(auth_bytes=secret), 2, SaslAuthenticateResponse)
        assert answer.error_code == 0, answer
        return wire

    def flat(self, answer: Message) -> Flat:
        _sort(answer)
        if isinstance(answer, CreateTopicsResponse):
            for topic in answer.topics:
                self.name_id(topic.topic_id, topic.name)
        elif isinstance(answer, CreateDelegationTokenResponse):
            answer = _without_chance(answer)
        elif isinstance(answer, DescribeDelegationTokenResponse):
            answer = DescribeDelegationTokenResponse(
                error_code=answer.error_code,
                tokens=sorted((_without_chance(token) for token in answer.tokens), key=repr),
            )
        elif isinstance(answer, (RenewDelegationTokenResponse, ExpireDelegationTokenResponse)):
            answer.expiry_timestamp_ms = min(answer.expiry_timestamp_ms, A_TIME)
        elif isinstance(answer, JoinGroupResponse) and not answer.error_code:
            self.symbols.define(answer.member_id, "member that joined")
        return flatten_in_order(answer, self.symbols)

    def name_id(self, topic_id: UUID, name: str | None) -> None:
        if topic_id != NO_TOPIC_ID:
            self.symbols.define(topic_id, f"id of {name}")

    def learn_ids(self) -> None:
        """Of all topics: some are created on the way."""
        for topic in self.quietly(MetadataRequest(topics=None), 12).topics:
            self.name_id(topic.topic_id, topic.name)


def _without_chance(token: Any) -> Any:
    """A copy of what was made or described, without its id and HMAC, and with lives instead of times."""
    same = copy(token)
    issued = getattr(token, "issue_timestamp_ms", None) or getattr(token, "issue_timestamp", 0)
    for name in token.__slots__:
        value = getattr(token, name)
        if name in ("token_id", "hmac"):
            setattr(same, name, type(value)() if not value else "id" if name == "token_id" else b"hmac")
        elif "timestamp" in name and value > 0:
            # Renewals were a moment later on one broker than on the other.
            setattr(same, name, round((value - issued) / ROUGHLY_MS))
    return same


def _sort(answer: Message) -> None:
    """Lists whose order neither broker chooses, and whose elements have no names."""
    if isinstance(answer, DescribeAclsResponse):
        for resource in answer.resources:
            resource.acls.sort(key=repr)
        answer.resources.sort(key=repr)
    elif isinstance(answer, ConsumerGroupDescribeResponse):
        for group in answer.groups:
            for member in group.members:
                member.subscribed_topic_names.sort()
    elif isinstance(answer, (AlterClientQuotasResponse, DescribeClientQuotasResponse)):
        for entry in answer.entries or ():
            entry.entity.sort(key=repr)
    elif isinstance(answer, DeleteAclsResponse):
        for result in answer.filter_results:
            result.matching_acls.sort(key=repr)


class Person:
    """One of those who have no rights but by rules, in one state of the rules."""

    def __init__(self, state: str, user: User, admin: User) -> None:
        assert admin.name == ADMIN
        self.state = state
        self.user = user
        self.admin = admin
        """Prepares and cleans up, and is never refused."""
        self._made = 0

    @property
    def name(self) -> str:
        return self.user.name

    @property
    def label(self) -> str:
        return f"{self.state}-{self.name}"

    def ask(self, step: str, request: Message, version: int) -> Any:
        return self.user.ask(f"{self.state}: {self.name}: {step}", request, version)

    def ask_until(self, is_whole: Callable[[Any], bool], step: str, request: Message, version: int) -> Any:
        """Keeps the first answer that is whole."""
        for _ in range(MOST_QUESTIONS):
            answer = self.user.quietly(request, version)
            if is_whole(answer):
                break
        self.user.answers[f"{self.state}: {self.name}: {step} v{version}"] = self.user.flat(answer)
        return answer

    def note(self, step: str, **facts: str | int | bool | None) -> None:
        self.user.note(f"{self.state}: {self.name}: {step}", **facts)

    def fresh(self, prefix: str) -> str:
        """A name that nothing has yet. The prefix says which rules are about it."""
        self._made += 1
        return f"{prefix}{self.label}-{self._made}"
