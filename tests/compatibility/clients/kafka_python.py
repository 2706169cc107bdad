"""kafka-python 3, whose producer is idempotent unless told otherwise."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

with warnings.catch_warnings():
    # The library reads its schemas by a function that Python has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.codec import has_snappy, has_zstd
    from kafka.errors import KafkaError

from tests.compatibility.clients.access import Access
from tests.compatibility.clients.client import NO_CODE, Client, ClientFailure, Consumed, NewRecord

_MOMENTS = {"earliest": -2, "latest": -1, "max_timestamp": -3}


def _failure(error: KafkaError) -> ClientFailure:
    code = getattr(error, "errno", None)
    return ClientFailure(NO_CODE if code is None else code, repr(error))


class KafkaPythonClient(Client):
    name: ClassVar[str] = "kafka-python"
    operations: ClassVar[frozenset[str]] = frozenset(
        {
            "create",
            "delete",
            "describe",
            "add_partitions",
            "describe_configs",
            "alter_config",
            "delete_records",
            "list_offsets",
            "describe_cluster",
            "describe_log_dirs",
        }
    )

    # Two codecs need packages that the library does not depend on.
    lacks: ClassVar[frozenset[str]] = frozenset(
        {"null key and value", "null header"}
        | (set() if has_snappy() else {"snappy"})
        | (set() if has_zstd() else {"zstd"})
    )

    def __init__(self, bootstrap: str, access: Access | None = None) -> None:
        self._connection: dict[str, Any] = {"bootstrap_servers": bootstrap}
        if access is not None:
            self._connection |= access.for_kafka_python()
        self._admin_client: Any = None

    @property
    def _admin(self) -> Any:
        if self._admin_client is None:
            self._admin_client = KafkaAdminClient(**self._connection)
        return self._admin_client

    def _ask(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except KafkaError as error:
            raise _failure(error) from error

    def close(self) -> None:
        if self._admin_client is not None:
            self._admin_client.close()

    def produce(
        self,
        topic: str,
        records: Sequence[NewRecord],
        *,
        partition: int = 0,
        compression: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = KafkaProducer(
            **self._connection,
            compression_type=None if compression == "none" else compression,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            linger_ms=20,
            max_request_size=64 << 20,
            delivery_timeout_ms=20_000,
            request_timeout_ms=10_000,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            producer.flush(30)
            return [one.get(30).offset for one in sent]
        except KafkaError as error:
            raise _failure(error) from error
        finally:
            producer.close(5)

    def consume(
        self,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        at: str = "start",
        value: int = 0,
        timeout_ms: int = 10_000,
    ) -> list[Consumed]:
        assigned = TopicPartition(topic, partition)
        consumer = KafkaConsumer(
            **self._connection,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            fetch_max_wait_ms=100,
            consumer_timeout_ms=timeout_ms,
        )
        try:
            consumer.assign([assigned])
            if at == "start":
                consumer.seek_to_beginning(assigned)
            elif at == "end":
                consumer.seek_to_end(assigned)
            elif at == "offset":
                consumer.seek(assigned, value)
            else:
                found = consumer.offsets_for_times({assigned: value})[assigned]
                if found is None:
                    consumer.seek_to_end(assigned)
                else:
                    consumer.seek(assigned, found.offset)
            result: list[Consumed] = []
            if count:
                for one in consumer:
                    headers = tuple((name, content) for name, content in one.headers)
                    result.append(Consumed(one.offset, one.timestamp, one.key, one.value, headers))
                    if len(result) == count:
                        break
            return result
        except KafkaError as error:
            raise _failure(error) from error
        finally:
            consumer.close()

    def create(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        wanted = {topic: {"num_partitions": partitions, "replication_factor": 1, "configs": configs}}
        self._ask(lambda: self._admin.create_topics(wanted))

    def delete(self, topic: str) -> None:
        self._ask(lambda: self._admin.delete_topics([topic]))

    def describe(self, topic: str) -> dict[str, Any]:
        (found,) = self._ask(lambda: self._admin.describe_topics([topic]))
        if found["error_code"]:
            raise ClientFailure(found["error_code"], "describe")
        return {
            "topic_id": str(found["topic_id"]),
            "partitions": [
                {
                    "partition": one["partition_index"],
                    "leader": one["leader_id"],
                    "replicas": list(one["replica_nodes"]),
                    "isr": list(one["isr_nodes"]),
                }
                for one in found["partitions"]
            ],
        }

    def add_partitions(self, topic: str, count: int) -> None:
        self._ask(lambda: self._admin.create_partitions({topic: count}))

    def describe_configs(self, topic: str) -> dict[str, Any]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = self._ask(lambda: self._admin.describe_configs([resource], config_filter="all"))
        return {
            "configs": {
                name: {"value": entry["value"], "source": entry["config_source"]}
                for name, entry in found["topic"][topic].items()
            }
        }

    def alter_config(self, topic: str, name: str, value: str, how: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: (how.upper(), value)})
        found = self._ask(lambda: self._admin.alter_configs([resource], raise_on_unknown=False))
        outcome = found["topic"][topic]
        if outcome != "OK":
            # The library turns the code into text such as "[Error 40] InvalidConfigurationError: ...".
            code = int(outcome.split("]")[0].rpartition(" ")[2]) if outcome.startswith("[Error") else NO_CODE
            raise ClientFailure(code, outcome)

    def delete_records(self, topic: str, partition: int, offset: int) -> dict[str, Any]:
        asked = TopicPartition(topic, partition)
        return {
            "low_watermark": self._ask(lambda: self._admin.delete_records({asked: offset}))[asked][
                "low_watermark"
            ]
        }

    def list_offsets(self, topic: str, partition: int, at: str) -> dict[str, Any]:
        asked = TopicPartition(topic, partition)
        moment = _MOMENTS[at] if at in _MOMENTS else int(at)
        found = self._ask(lambda: self._admin.list_partition_offsets({asked: moment}))[asked]
        return {"offset": found.offset, "timestamp": found.timestamp}

    def describe_cluster(self) -> dict[str, Any]:
        found = self._ask(self._admin.describe_cluster)
        return {
            "cluster_id": found["cluster_id"],
            "controller": found["controller_id"],
            "nodes": [broker["broker_id"] for broker in found["brokers"]],
        }

    def describe_log_dirs(self, topic: str, broker: int) -> dict[str, Any]:
        (found,) = self._ask(lambda: self._admin.describe_log_dirs([topic], [broker]))
        return {
            "replicas": [
                {"partition": one["partition_index"], "size": one["partition_size"]}
                for directory in found["log_dirs"]
                for described in directory["topics"]
                for one in described["partitions"]
            ]
        }
