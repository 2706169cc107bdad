"""One broker answering the script: every answer is kept under the name of its step."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from headrace.broker.requests.apis import BY_KEY
from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse
from tests.broker_process import BrokerProcess
from tests.oracle.plain import Flat, Symbols, flatten
from tests.wire import Wire

#: No request of the script may take longer; a broker that says nothing for so long says nothing at all.
SILENCE_SECONDS = 30.0


def response_class(request: Message) -> type[Message]:
    name = type(request).__module__.rpartition(".")[2].replace("_request", "_response")
    found: type[Message] = getattr(
        import_module(f"headrace.protocol.messages.{name}"),
        type(request).__name__.replace("Request", "Response"),
    )
    return found


def versions(request: type[Message], first: int = 0) -> range:
    """The versions of an API that Headrace offers, from `first` on."""
    api = BY_KEY[request.API_KEY]
    return range(max(first, api.lowest), api.highest + 1)


class Conversation:
    """Asks one broker. A step's name is unique; what is compared later is kept in `answers`."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.wire = self.connect(SILENCE_SECONDS)
        self._others: list[Wire] = []
        self.symbols = Symbols()
        self.symbols.define(broker.port, "port")
        self.symbols.define(str(broker.log_dir), "log dir")
        self.answers: dict[str, Flat] = {}
        self.symbols.define(self.quietly(MetadataRequest(topics=[]), 9).cluster_id, "cluster id")

    def ask(self, step: str, request: Message, version: int) -> Any:
        """The decoded answer, or nothing where the broker closed the connection."""
        name = f"{step} v{version}"
        assert name not in self.answers, f"two steps are called {name}"
        try:
            answer = self.wire.ask(request, version, response_class(request))
        except (EOFError, ConnectionError):
            self.reconnect()
            self.answers[name] = {"connection": "closed"}
            return None
        except TimeoutError:
            self.reconnect()
            self.answers[name] = {"connection": "silent"}
            return None
        self.answers[name] = self.flat(answer)
        return answer

    def flat(self, answer: Message) -> Flat:
        return flatten(answer, self.symbols)

    def quietly(self, request: Message, version: int) -> Any:
        """A request whose answer is not compared: it only prepares something."""
        return self.wire.ask(request, version, response_class(request))

    def note(self, step: str, **facts: str | int | bool | None) -> None:
        """Keep something that is not an answer."""
        assert step not in self.answers, f"two steps are called {step}"
        self.answers[step] = dict(facts)

    def another(self, timeout: float) -> Wire:
        """A connection beside the usual one, closed with it."""
        self._others.append(self.connect(timeout))
        return self._others[-1]

    def connect(self, timeout: float) -> Wire:
        return Wire(self.broker.port, timeout=timeout)

    def reconnect(self) -> None:
        self.wire.close()
        self.wire = self.connect(SILENCE_SECONDS)

    def topic(self, name: str, partitions: int = 1, **configs: str) -> UUID:
        """Create a topic and wait until the broker leads it. Underscores in config names stand for dots."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=1,
                    configs=[
                        CreatableTopicConfig(name=key.replace("_", "."), value=value)
                        for key, value in configs.items()
                    ],
                )
            ],
            timeout_ms=10_000,
        )
        (created,) = self.quietly(request, 7).topics
        assert created.error_code == 0, created
        self.symbols.define(created.topic_id, f"id of {name}")
        topic_id: UUID = created.topic_id
        self.wait_for(name, partitions)
        return topic_id

    def metadata(self, name: str) -> Any:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        answer: MetadataResponse = self.quietly(asked, 12)
        return answer.topics[0]

    def wait_for(self, name: str, partitions: int) -> None:
        def led() -> bool:
            found = self.metadata(name)
            if len(found.partitions) != partitions or any(one.leader_id < 0 for one in found.partitions):
                return False
            # Kafka publishes a leader before that leader serves.
            asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
            request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=asked)])
            (listed,) = self.quietly(request, 5).topics
            return all(one.error_code == 0 for one in listed.partitions)

        self.wait_until(led)

    def wait_until(self, settled: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not settled():
            assert time.monotonic() < deadline, "the broker did not settle"
            time.sleep(0.02)

    def wait_completed(self, transactional_id: str) -> None:
        """Until the coordinator has heard of every marker. A marker that can be read is not enough: for a
        moment the next request of that producer would still be refused, by Kafka as by Headrace.
        """
        asked = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        self.wait_until(
            lambda: (
                self.quietly(asked, 0).transaction_states[0].transaction_state
                not in ("PrepareCommit", "PrepareAbort")
            )
        )

    def close(self) -> None:
        for wire in (self.wire, *self._others):
            wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
