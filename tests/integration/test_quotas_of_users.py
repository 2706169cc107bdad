"""A user who is over a quota and comes back over a new connection is held before anything is served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.broker_process import HeadraceProcess
from tests.integration.test_quotas import TOPIC, produce, set_quota
from tests.ports import own_port
from tests.wire import Wire

LOGINS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="a" user_bob="b";'


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HeadraceProcess]:
    process = HeadraceProcess(tmp_path)
    process.secured_ports["SASL_PLAINTEXT"] = own_port()
    process.properties = {
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": LOGINS,
    }
    with process:
        yield process


def log_in(broker: HeadraceProcess, user: str) -> Wire:
    wire = Wire(broker.secured_ports["SASL_PLAINTEXT"], timeout=60)
    wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
    token = f"\0{user}\0{user[0]}".encode()
    answer: SaslAuthenticateResponse = wire.ask(
        SaslAuthenticateRequest(auth_bytes=token), 1, SaslAuthenticateResponse
    )
    assert answer.error_code == 0
    return wire


def test_a_new_connection_does_not_begin_anew(broker: HeadraceProcess) -> None:
    with Wire(broker.port, timeout=60) as operator:
        wanted = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        operator.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 6, CreateTopicsResponse)
        set_quota(operator, {"user": "bob"}, "consumer_byte_rate", 1e6)  # it stays
        set_quota(operator, {"user": "alice"}, "producer_byte_rate", 1.0)
        with closing(log_in(broker, "alice")) as first:
            assert first.ask(produce(), 9, ProduceResponse).throttle_time_ms > 1_000_000
        with closing(log_in(broker, "alice")) as second, closing(log_in(broker, "bob")) as other:
            asked = second.send_body(3, 12, MetadataRequest().to_bytes(12))
            second.socket.settimeout(1)
            with pytest.raises(TimeoutError):
                second.receive_frame()
            other.ask(MetadataRequest(), 12, MetadataResponse)
            set_quota(operator, {"user": "alice"}, "producer_byte_rate", None)
            second.socket.settimeout(60)
            second.receive_body(3, 12, asked)
