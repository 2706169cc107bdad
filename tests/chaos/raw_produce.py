"""One record by hand to one broker, whatever it leads: what does it dare to acknowledge?"""

from __future__ import annotations

import time

from headrace.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.protocol.messages.produce_response import ProduceResponse
from tests.chaos.testbed import Testbed
from tests.unit.log.material import batch_of
from tests.wire import Wire

VERSION = 9


class RawProducer:
    """A connection that is opened before the fault: a client that has not heard of anything."""

    def __init__(self, bed: Testbed, broker_id: int, timeout: float = 60) -> None:
        broker = bed.cluster.brokers[broker_id]
        self._wire = Wire(broker.port, host=broker.place.address, timeout=timeout)

    def send(
        self, topic: str, partition: int, value: bytes, *, acks: int = -1, timeout_ms: int = 3000
    ) -> int:
        batch, _ = batch_of(value, timestamp=int(time.time() * 1000))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=partition, records=bytes(batch))],
                )
            ],
        )
        return self._wire.send_body(ProduceRequest.API_KEY, VERSION, request.to_bytes(VERSION))

    def error_code(self, correlation_id: int) -> int:
        """What the broker says; that it hangs up is also an answer, and no acknowledgement."""
        try:
            body = self._wire.receive_body(ProduceRequest.API_KEY, VERSION, correlation_id)
        except (EOFError, ConnectionError, TimeoutError):
            return -1
        answer = ProduceResponse.from_bytes(body, VERSION)
        return int(answer.responses[0].partition_responses[0].error_code)

    def close(self) -> None:
        self._wire.close()
