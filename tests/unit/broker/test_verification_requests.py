"""Questions to a coordinator on another broker: batched, one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from headrace.broker.transactions.verification_requests import Question, VerificationSender
from headrace.core.ids import TopicPartition
from headrace.core.ports_network import PeerRefused
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from headrace.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from tests.unit.broker.membership_answers import Link, settle

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
OK = ErrorCode.NONE


class Peer:
    def __init__(self) -> None:
        self.links: list[Link] = []
        self.refuses = False
        runtime: Any = SimpleNamespace(
            loop=asyncio.get_running_loop(),
            environment=SimpleNamespace(dialer=self),
            log=SimpleNamespace(info=lambda *_, **__: None),
        )
        metadata: Any = SimpleNamespace(address_of=lambda _: ("host-2", 9092))
        self.questions = VerificationSender(runtime, metadata, 2)

    async def dial(self, _host: str, _port: int, *, timeout: float) -> Link:
        assert timeout > 0
        if self.refuses:
            raise PeerRefused("nobody listens")
        self.links.append(Link())
        return self.links[-1]

    def ask(
        self, name: str, *partitions: TopicPartition, epoch: int = 0, add: bool = False, producer: int = 7
    ) -> Question:
        question = Question(name, producer, epoch, partitions or (FIRST,), add)
        self.questions.add(question)
        return question


def names(request: AddPartitionsToTxnRequest) -> Sequence[str]:
    return [each.transactional_id for each in request.transactions]


async def test_what_comes_meanwhile_goes_together() -> None:
    peer = Peer()
    first = peer.ask("a")
    await settle()
    rest = [peer.ask("b"), peer.ask("c", FIRST, SECOND)]
    await settle()
    (link,) = peer.links
    assert [names(each) for each in link.requests] == [["a"]], "one at a time"
    link.answer()
    await settle()
    assert first.completion.result() == {FIRST: OK}
    assert names(link.requests[1]) == ["b", "c"]
    link.answer(ErrorCode.TRANSACTION_ABORTABLE)
    await settle()
    assert rest[0].completion.result() == {FIRST: ErrorCode.TRANSACTION_ABORTABLE}
    assert list(rest[1].completion.result()) == [FIRST, SECOND]


async def test_one_id_stands_once_in_a_request() -> None:
    peer = Peer()
    same = [peer.ask("a", FIRST), peer.ask("a", SECOND)]
    newer = peer.ask("a", FIRST, epoch=1)
    await settle()
    (link,) = peer.links
    (only,) = link.requests[0].transactions
    assert only.topics[0].partitions == [0, 1]
    link.answer()
    await settle()
    assert [each.completion.result() for each in same] == [{FIRST: OK}, {SECOND: OK}]
    assert not newer.completion.is_done
    assert link.requests[1].transactions[0].producer_epoch == 1
    link.answer()
    await settle()
    assert newer.completion.is_done


async def test_a_broken_link_is_a_network_exception_and_is_opened_again() -> None:
    peer = Peer()
    question = peer.ask("a")
    await settle()
    peer.links[0].break_off()
    await settle()
    assert question.completion.result() == {FIRST: ErrorCode.NETWORK_EXCEPTION}
    again = peer.ask("a")
    await settle()
    peer.links[1].answer()
    await settle()
    assert again.completion.result() == {FIRST: OK}
    peer.refuses = True
    peer.links[1].close()
    refused = peer.ask("a")
    await settle()
    assert refused.completion.result() == {FIRST: ErrorCode.NETWORK_EXCEPTION}


async def test_an_answer_for_all_of_them() -> None:
    peer = Peer()
    questions = [peer.ask("a"), peer.ask("b")]
    await settle()
    response = AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    peer.links[0].answer(response=response)
    await settle()
    assert [each.completion.result()[FIRST] for each in questions] == [ErrorCode.INVALID_TXN_STATE] * 2


async def test_an_answer_that_leaves_something_out() -> None:
    peer = Peer()
    question = peer.ask("a")
    await settle()
    peer.links[0].answer(response=AddPartitionsToTxnResponse())
    await settle()
    assert question.completion.result() == {FIRST: ErrorCode.NETWORK_EXCEPTION}


async def test_a_stop_refuses_what_waits() -> None:
    peer = Peer()
    questions = [peer.ask("a")]
    await settle()
    questions.append(peer.ask("b"))
    peer.questions.stop()
    await settle()
    assert [each.completion.result()[FIRST] for each in questions] == [ErrorCode.NETWORK_EXCEPTION] * 2
    assert not peer.links[0].is_open
