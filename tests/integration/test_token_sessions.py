"""A session by delegation token, on a real broker: it ends with the token, unless the token is renewed."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from headrace.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from headrace.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from headrace.security.scram_client import ScramClient
from headrace.security.scram_credential import ScramMechanism
from headrace.testing.zookeeper import ZooKeeper
from tests.broker_process import HeadraceProcess, Place
from tests.cluster_process import DIES_WITH_PARENT, eventually
from tests.ports import own_port
from tests.wire import Wire

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
EXPIRY_MS = 6_000


PROPERTIES = {
    "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN,
    "delegation.token.secret.key": "a key that is the same at every broker",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HeadraceProcess]:
    process = HeadraceProcess(tmp_path)
    process.properties = {
        **PROPERTIES,
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{process.port}",
        "delegation.token.expiry.time.ms": str(EXPIRY_MS),
        "delegation.token.expiry.check.interval.ms": "500",
    }
    with process:
        yield process


@pytest.fixture
def brokers(tmp_path: Path, shared_zookeeper: ZooKeeper, chroot: str) -> Iterator[list[HeadraceProcess]]:
    """A cluster; one of its brokers is the controller."""
    made = [
        HeadraceProcess(tmp_path / f"{number}", broker_id=number, place=Place(prefix=DIES_WITH_PARENT))
        for number in (1, 2)
    ]
    with ExitStack() as stack:
        for process in made:
            process.properties = {
                **PROPERTIES,
                "zookeeper.connect": shared_zookeeper.connect + chroot,
                "listeners": (
                    f"PLAINTEXT://127.0.0.1:{own_port()},SASL_PLAINTEXT://127.0.0.1:{process.port}"
                ),
                "inter.broker.listener.name": "PLAINTEXT",
            }
            process.launch()
            stack.callback(process.kill)
        for process in made:
            process.wait_ready()
        yield made


class Session(Wire):
    def handshake(self, mechanism: str) -> None:
        told = self.ask(SaslHandshakeRequest(mechanism=mechanism), 1, SaslHandshakeResponse)
        assert told.error_code == 0

    def authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=token), 1, SaslAuthenticateResponse)
        assert isinstance(answer, SaslAuthenticateResponse)
        return answer

    def as_alice(self) -> Session:
        self.handshake("PLAIN")
        assert self.authenticate(b"\0alice\0secret").error_code == 0
        return self

    def by_token(
        self, token: CreateDelegationTokenResponse, mechanism: ScramMechanism = ScramMechanism.SHA_512
    ) -> SaslAuthenticateResponse:
        """The last answer."""
        self.handshake(mechanism.value)
        password = base64.b64encode(token.hmac).decode()
        client = ScramClient(mechanism, token.token_id, password, "nonce", is_token=True)
        first = self.authenticate(client.first())
        last = self.authenticate(client.final(first.auth_bytes))
        if last.error_code == 0:
            client.verify(last.auth_bytes)
        return last

    def create(self) -> CreateDelegationTokenResponse:
        request = CreateDelegationTokenRequest(
            owner_principal_type=None, owner_principal_name=None, renewers=[], max_lifetime_ms=-1
        )
        made = self.ask(request, 3, CreateDelegationTokenResponse)
        assert isinstance(made, CreateDelegationTokenResponse)
        return made

    def is_served(self) -> bool:
        try:
            self.ask(MetadataRequest(topics=[]), 9, MetadataResponse)
        except (EOFError, ConnectionError):
            return False
        return True


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_a_session_ends_with_its_token(broker: HeadraceProcess, mechanism: ScramMechanism) -> None:
    with Session(broker.port) as alice, Session(broker.port) as session, Session(broker.port) as late:
        token = alice.as_alice().create()
        assert (token.error_code, token.principal_name) == (0, "alice")
        last = session.by_token(token, mechanism)
        assert last.error_code == 0
        assert 0 < last.session_lifetime_ms <= EXPIRY_MS
        assert session.is_served()
        assert session.create().error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        time.sleep(last.session_lifetime_ms / 1000 + 0.1)
        assert not session.is_served()
        refused = late.by_token(token, mechanism)
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert alice.is_served(), "a password does not expire"


def test_a_session_goes_on_with_a_token_that_is_renewed(broker: HeadraceProcess) -> None:
    with Session(broker.port) as alice, Session(broker.port) as session:
        token = alice.as_alice().create()
        lifetime_ms = session.by_token(token).session_lifetime_ms
        ends = time.monotonic() + lifetime_ms / 1000
        time.sleep(2)
        renewed = alice.ask(
            RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1), 2, RenewDelegationTokenResponse
        )
        assert renewed.expiry_timestamp_ms > token.expiry_timestamp_ms
        assert session.by_token(token).session_lifetime_ms > ends * 1000 - time.monotonic() * 1000
        time.sleep(max(0.0, ends - time.monotonic()) + 0.1)
        assert session.is_served()


def created(port: int) -> CreateDelegationTokenResponse | None:
    with Session(port) as alice:
        token = alice.as_alice().create()
    return token if token.error_code == 0 else None


def logs_in(port: int, token: CreateDelegationTokenResponse) -> bool:
    with Session(port) as session:
        return session.by_token(token).error_code == 0


def test_a_token_counts_at_every_broker_of_a_cluster(brokers: list[HeadraceProcess]) -> None:
    """Whichever is asked: what only the controller can do is forwarded, and with it how the client came."""
    for maker in brokers:
        eventually(partial(created, maker.port), 60, "there is a controller")
        token = created(maker.port)
        assert token is not None
        for other in brokers:
            eventually(partial(logs_in, other.port, token), 30, "its metadata has the token")
            with Session(other.port) as session, Session(other.port) as alice:
                assert session.by_token(token).error_code == 0
                assert session.create().error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
                renew = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)
                told = session.ask(renew, 2, RenewDelegationTokenResponse)
                assert told.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
                told = alice.as_alice().ask(renew, 2, RenewDelegationTokenResponse)
                assert told.error_code == 0
