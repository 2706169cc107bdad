"""The partitions of a produce request whose transaction has to be looked into before their records are taken.

Only the first batch of a transaction in a partition needs it; the later ones find the transaction open.
Coordinators' errors that old clients would not try again after become NOT_ENOUGH_REPLICAS, which they do,
and which does not make them ask for metadata. That is Kafka's choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.transactions.verification_requests import Codes
from headrace.core.completion import Completion
from headrace.core.errors import InvalidProducerIdMapping
from headrace.core.ids import TopicPartition
from headrace.protocol.batch import HEADER_SIZE, TRANSACTIONAL_FLAG, read_header
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.produce_codec import ProduceRequestView

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

FIRST_WITH_ABORTABLE: Final = 11
FIRST_THAT_ADDS: Final = 12

Refusals = dict[TopicPartition, tuple[ErrorCode, str]]

_NOT_ASKED: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def verify_partitions(
    context: RequestContext, request: ProduceRequestView, frame: memoryview, version: int
) -> Completion[Refusals] | None:
    """Completion the partitions that may not be written to; None if no coordinator has to be asked.

    Raises InvalidProducerIdMapping for a request with batches of several producers.
    """
    producer: tuple[int, int] | None = None
    unverified: dict[TopicPartition, int] = {}
    for topic, partitions in request.topics:
        name = topic
        if not isinstance(name, str):
            image = context.metadata.image.topic_by_id(name)
            if image is None:
                continue  # the answer says so
            name = image.name
        for index, start, end in partitions:
            if start < 0 or end - start < HEADER_SIZE:
                continue
            header = read_header(frame, start)
            if not header.attributes & TRANSACTIONAL_FLAG or header.producer_id < 0:
                continue
            sent_by = (header.producer_id, header.producer_epoch)
            if producer is None:
                producer = sent_by
            elif sent_by != producer:
                raise InvalidProducerIdMapping("one request holds transactional batches of several producers")
            partition = context.partitions.find(name, index)
            if partition is None or not partition.is_leader or partition.log.is_sealed:
                continue  # the append says so
            if partition.log.producers.needs_verification(*sent_by):
                unverified[TopicPartition(name, index)] = header.base_sequence
    if producer is None or not unverified or request.transactional_id is None:
        return None
    verified = context.coordinators.verification.verify(
        request.transactional_id,
        *producer,
        unverified,
        add=version >= FIRST_THAT_ADDS,
        knows_abortable=version >= FIRST_WITH_ABORTABLE,
        sequences=unverified,
    )
    return verified.then(lambda codes: _refusals(codes, version))


def _refusals(codes: Codes, version: int) -> Refusals:
    refusals: Refusals = {}
    for name, code in codes.items():
        if code in _NOT_ASKED or (code == ErrorCode.CONCURRENT_TRANSACTIONS and version < FIRST_THAT_ADDS):
            refusals[name] = (
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"whether {name} is in the transaction is not known: {code.name}",
            )
        elif code == ErrorCode.INVALID_TXN_STATE:
            refusals[name] = (code, f"{name} was not added to the transaction")
        elif code not in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            refusals[name] = (code, f"{name} cannot take records of this transaction: {code.name}")
    return refusals
