"""Produce and InitProducerId: good batches, and every kind of bad one."""

from __future__ import annotations

import struct
import time
import zlib

from headrace.protocol.batch import reseal
from headrace.protocol.compression import Compression
from headrace.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.records import NewRecord, encode_batch
from tests.oracle.conversation import Conversation, versions
from tests.requests import fetch_request

#: Some hours ago: within every limit on timestamps, and within retention.
BASE_MS = int(time.time()) * 1000 - 3 * 3600 * 1000
V = 11
#: Kafka serves later ones only to those who enable unstable versions.
STABLE_INIT_PRODUCER_ID = 5


def batch(*values: bytes, **fields: int | bool) -> bytearray:
    records = [NewRecord(value, key=b"k", timestamp=BASE_MS + i) for i, value in enumerate(values)]
    return encode_batch(records, **fields)  # type: ignore[arg-type]  # each name is one of its parameters


def produce_request(
    topic: str, records: bytes | bytearray | None, *, partition: int = 0, acks: int = -1
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=None if records is None else memoryview(records))
    return ProduceRequest(
        acks=acks, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def run(talk: Conversation) -> None:
    _good(talk)
    _bad_requests(talk)
    _bad_batches(talk)
    _topic_demands(talk)
    _sequences(talk)
    _identities(talk)


def _good(talk: Conversation) -> None:
    talk.topic("produce-good")
    for version in versions(ProduceRequest, 3):
        talk.ask("produce one batch", produce_request("produce-good", batch(b"one", b"two")), version)
    for codec in Compression:
        data = batch(b"a" * 100, b"b" * 100, compression=codec)
        talk.ask(f"produce {codec.name}", produce_request("produce-good", data), V)
    talk.ask("fetch what was produced", fetch_request("produce-good"), 12)
    talk.ask("produce acks=1", produce_request("produce-good", batch(b"x"), acks=1), V)
    # Old versions were removed, yet are offered, because old librdkafka looks for them.
    for version in (0, 1, 2):
        talk.wire.send_body(0, version, produce_request("produce-good", batch(b"x")).to_bytes(3)[2:])
        try:
            talk.note(f"produce in version {version}", answered=len(talk.wire.receive_frame()) > 0)
        except (EOFError, ConnectionError):
            talk.note(f"produce in version {version}", connection="closed")
        talk.reconnect()


def _bad_requests(talk: Conversation) -> None:
    talk.topic("produce-bad")
    ask = talk.ask
    ask("acks=2", produce_request("produce-bad", batch(b"x"), acks=2), V)
    ask("unknown topic", produce_request("produce-nowhere", batch(b"x")), V)
    ask("unknown partition", produce_request("produce-bad", batch(b"x"), partition=7), V)
    ask("negative partition", produce_request("produce-bad", batch(b"x"), partition=-1), V)
    ask("invalid topic name", produce_request("not a name", batch(b"x")), V)
    ask("no records", produce_request("produce-bad", None), V)
    ask("empty records", produce_request("produce-bad", b""), V)
    ask("no topics", ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[]), V)
    ask("two batches in one partition", produce_request("produce-bad", batch(b"x") + batch(b"y")), V)
    request = produce_request("produce-bad", batch(b"x"))
    request.transactional_id = "tx"
    ask("transactional id but a plain batch", request, V)
    _without_acks(talk)


def _without_acks(talk: Conversation) -> None:
    for name, topic in (("good", "produce-bad"), ("failing", "produce-nowhere")):
        body = produce_request(topic, batch(b"x"), acks=0).to_bytes(V)
        talk.wire.send_body(0, V, body)
        answer = talk.ask(f"a request after a {name} one without acks", fetch_request("produce-bad"), 12)
        talk.note(f"connection after a {name} produce without acks", open=answer is not None)


def _changed(data: bytearray, at: int, fmt: str, value: int, *, sealed: bool = True) -> bytearray:
    struct.pack_into(fmt, data, at, value)
    if sealed:
        reseal(data, 0, len(data))
    return data


def _bad_batches(talk: Conversation) -> None:
    talk.topic("produce-broken")

    def refuse(step: str, data: bytes | bytearray, version: int = V) -> None:
        talk.ask(step, produce_request("produce-broken", data), version)

    flipped = batch(b"payload")
    flipped[-3] ^= 1
    refuse("corrupt crc", flipped)
    refuse("magic 1 in a batch", _changed(batch(b"x"), 16, ">b", 1, sealed=False))
    refuse("magic 3", _changed(batch(b"x"), 16, ">b", 3, sealed=False))
    refuse("batch cut short", batch(b"x" * 50)[:-10])
    refuse("less than a header", batch(b"x")[:30])
    talk.topic("produce-trailing")
    talk.ask("bytes after the batch", produce_request("produce-trailing", batch(b"x") + b"\0\0\0\0"), V)
    refuse("length below a header's", _changed(batch(b"x"), 8, ">i", 10, sealed=False))
    refuse("negative length", _changed(batch(b"x"), 8, ">i", -1, sealed=False))
    refuse("count that is not the offsets'", _changed(batch(b"x", b"y"), 23, ">i", 5))
    refuse("negative record count", _changed(batch(b"x"), 57, ">i", -1))
    refuse("no records in a batch", _changed(batch(b"x"), 57, ">i", 0))
    refuse("base offset that is not zero", _changed(batch(b"x"), 0, ">q", 100))
    refuse("control batch from a client", batch(b"x", control=True))
    refuse("compression 5", _changed(batch(b"x"), 21, ">h", 5))
    refuse("compression 7", _changed(batch(b"x"), 21, ">h", 7))
    refuse("unused attribute bits", _changed(batch(b"x"), 21, ">h", 0x180))
    refuse("log append time claimed by the client", batch(b"x", log_append_time=True))
    refuse("zstd before version 7", batch(b"x", compression=Compression.ZSTD), 6)
    refuse("gzip that is none", _garbled(Compression.GZIP))
    refuse("records that are none", _garbled(Compression.NONE))
    refuse("an old message", _old_message())


def _garbled(codec: Compression) -> bytearray:
    """A sealed batch whose checksum is right and whose inside is not."""
    data = batch(b"some value here", compression=codec)
    for at in range(61, len(data)):
        data[at] = 0xFF
    reseal(data, 0, len(data))
    return data


def _old_message() -> bytes:
    """One message of format 1, which Kafka 4 no longer takes."""
    content = struct.pack(">bbqii", 1, 0, BASE_MS, -1, 1) + b"x"
    message = struct.pack(">I", zlib.crc32(content)) + content
    return struct.pack(">qi", 0, len(message)) + message


def _topic_demands(talk: Conversation) -> None:
    talk.topic("produce-small", max_message_bytes="200")
    talk.ask("larger than the topic allows", produce_request("produce-small", batch(b"x" * 300)), V)
    squeezed = batch(b"x" * 5000, compression=Compression.GZIP)
    talk.ask("compressed below the limit", produce_request("produce-small", squeezed), V)
    talk.topic("produce-compacted", cleanup_policy="compact")
    keyless = encode_batch([NewRecord(b"v", timestamp=BASE_MS), NewRecord(b"v", key=b"k", timestamp=BASE_MS)])
    talk.ask("no key in a compacted topic", produce_request("produce-compacted", keyless), V)
    talk.ask("no key in a compacted topic", produce_request("produce-compacted", keyless), 7)
    talk.topic("produce-stamped", message_timestamp_type="LogAppendTime")
    talk.ask("a topic that stamps", produce_request("produce-stamped", batch(b"x", b"y")), V)
    talk.topic(
        "produce-timely", message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="1000"
    )
    talk.ask("too old", produce_request("produce-timely", batch(b"x")), V)
    future = encode_batch([NewRecord(b"v", timestamp=BASE_MS * 2)])
    talk.ask("too far ahead", produce_request("produce-timely", future), V)
    talk.ask("too far ahead of the default", produce_request("produce-good", future), V)
    timeless = encode_batch([NewRecord(b"v", timestamp=-1)])
    talk.ask("no timestamp", produce_request("produce-good", timeless), V)
    for codec in ("gzip", "uncompressed", "zstd"):
        name = f"produce-to-{codec}"
        talk.topic(name, compression_type=codec)
        data = batch(b"a" * 50, b"b" * 50, compression=Compression.LZ4)
        talk.ask(f"a topic that is {codec}", produce_request(name, data), V)
        talk.ask(f"fetch from a topic that is {codec}", fetch_request(name), 12)


def _sequences(talk: Conversation) -> None:
    talk.topic("produce-sequences", 2)
    # Kafka fetches its first block of ids only when somebody asks.
    asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    talk.wait_until(lambda: bool(talk.quietly(asked, 4).error_code == 0))
    producer = talk.ask("a producer id", asked, 4).producer_id

    talk.symbols.define_producer(producer + 5000, "stranger from zero")
    talk.symbols.define_producer(producer + 6000, "stranger")

    def send(step: str, sequence: int, count: int = 1, *, epoch: int = 0, pid: int = producer) -> None:
        values = [b"%d" % i for i in range(count)]
        data = batch(*values, producer_id=pid, producer_epoch=epoch, base_sequence=sequence)
        talk.ask(step, produce_request("produce-sequences", data), V)

    send("sequence 0 of 3", 0, 3)
    send("sequence 3", 3)
    send("a duplicate", 3)
    send("an older duplicate", 0, 3)
    send("a gap", 9)
    send("an overlap", 2, 4)
    for sequence in range(4, 10):
        send(f"sequence {sequence}", sequence)
    send("a duplicate out of memory", 3)
    send("the oldest remembered duplicate", 5)
    send("next epoch not from zero", 5, epoch=1)
    send("next epoch", 0, epoch=1)
    send("the epoch before", 10, epoch=0)
    send("a producer never heard of, from zero", 0, pid=producer + 5000)
    send("a producer never heard of, not from zero", 17, pid=producer + 6000)
    send("negative sequence", -1)
    send("negative epoch", 1, epoch=-1)
    transactional = batch(b"t", producer_id=producer, producer_epoch=1, base_sequence=1, transactional=True)
    talk.ask(
        "a transactional batch outside of a transaction",
        produce_request("produce-sequences", transactional),
        V,
    )
    wrap = batch(b"w", producer_id=producer, producer_epoch=7, base_sequence=2**31 - 1)
    talk.ask("the last sequence of all", produce_request("produce-sequences", wrap, partition=1), V)
    described = DescribeProducersRequest(
        topics=[
            TopicRequest(name="produce-sequences", partition_indexes=[0, 9]),
            TopicRequest(name="produce-nowhere", partition_indexes=[0]),
        ]
    )
    talk.ask("describe producers", described, 0)


def _identities(talk: Conversation) -> None:
    for version in versions(InitProducerIdRequest):
        if version > STABLE_INIT_PRODUCER_ID:
            break
        talk.ask(
            "a new producer",
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000),
            version,
        )
    talk.ask(
        "empty transactional id", InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000), 4
    )
    talk.ask(
        "id without an epoch",
        InitProducerIdRequest(transactional_id=None, producer_id=5, transaction_timeout_ms=1000),
        4,
    )
    talk.ask(
        "epoch without an id",
        InitProducerIdRequest(transactional_id=None, producer_epoch=5, transaction_timeout_ms=1000),
        4,
    )
    known = InitProducerIdRequest(
        transactional_id=None, producer_id=5, producer_epoch=3, transaction_timeout_ms=1000
    )
    talk.ask("both, but no transaction", known, 4)
    talk.ask("no timeout", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4)
    talk.ask("negative timeout", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1), 4)
