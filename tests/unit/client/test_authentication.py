"""A client authenticates by PLAIN and SCRAM, and believes no server that cannot prove itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headrace.client.authentication import authenticate
from headrace.client.credentials import Credentials
from headrace.config.secret import Secret
from headrace.core.ports import Buffer
from headrace.core.ports_network import PeerReset, PeerUntrusted
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from headrace.protocol.primitives import Reader
from headrace.security.mechanism import AuthenticationFailed, Exchange
from headrace.security.plain import PlainExchange
from headrace.security.scram import ScramExchange
from headrace.security.scram_credential import ScramCredential, ScramMechanism

CANARY = "canary-91fb"
PASSWORDS = {"alice": CANARY}


class Server:
    """A link to a broker that has SASL and nothing else."""

    def __init__(self, exchanges: dict[str, Callable[[], Exchange]], *, hangs_up: bool = False) -> None:
        self._exchanges = exchanges
        self._exchange: Exchange | None = None
        self._hangs_up = hangs_up
        self.principal: str | None = None
        self.is_open = True
        self.asked: list[int] = []

    def close(self) -> None:
        self.is_open = False

    async def send(self, frame: Buffer) -> memoryview:
        reader = Reader(memoryview(bytes(frame)))
        key, version, correlation = reader.int16(), reader.int16(), reader.int32()
        reader.nullable_string()
        self.asked.append(key)
        if self._hangs_up:
            raise PeerReset("it closed the connection")
        reply: Message
        if key == ApiKey.SASL_HANDSHAKE:
            reply = self._handshake(SaslHandshakeRequest.decode(reader, version).mechanism)
        else:
            reply = self._step(SaslAuthenticateRequest.decode(reader, version).auth_bytes)
        return memoryview(correlation.to_bytes(4, "big") + reply.to_bytes(version))

    def _handshake(self, mechanism: str) -> SaslHandshakeResponse:
        if mechanism not in self._exchanges:
            return SaslHandshakeResponse(error_code=33, mechanisms=list(self._exchanges))
        self._exchange = self._exchanges[mechanism]()
        return SaslHandshakeResponse(mechanisms=list(self._exchanges))

    def _step(self, token: bytes) -> SaslAuthenticateResponse:
        assert self._exchange is not None
        try:
            step = self._exchange.step(bytes(token))
        except AuthenticationFailed as error:
            return SaslAuthenticateResponse(error_code=58, error_message=str(error))
        if step.authenticated is not None:
            self.principal = str(step.authenticated.principal)
        return SaslAuthenticateResponse(error_message=None, auth_bytes=step.reply)


def scram(mechanism: ScramMechanism, *, is_impostor: bool = False) -> Callable[[], Exchange]:
    right = ScramCredential.of_password(mechanism, CANARY, b"0123456789abcdef", 4096)
    # An impostor knows what is needed to check the client, and not what is needed to sign for itself.
    stored = ScramCredential(right.salt, right.iterations, right.stored_key, bytes(len(right.server_key)))
    found = {"alice": stored if is_impostor else right}
    return lambda: ScramExchange(mechanism, found.get, "server-nonce", b"secret")


def server(**options: bool) -> Server:
    return Server(
        {
            "PLAIN": lambda: PlainExchange({user: word.encode() for user, word in PASSWORDS.items()}),
            "SCRAM-SHA-256": scram(ScramMechanism.SHA_256, **options),
            "SCRAM-SHA-512": scram(ScramMechanism.SHA_512, **options),
        }
    )


def run(link: Server, mechanism: str, password: str = CANARY, user: str = "alice") -> None:
    credentials = Credentials(mechanism, user, Secret(password))
    asyncio.run(authenticate(link, "broker:1", credentials, 10))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_who_knows_the_password_is_let_in(mechanism: str) -> None:
    link = server()
    run(link, mechanism)
    assert link.principal == "User:alice"
    assert link.is_open


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("user", "password"), [("alice", CANARY + "x"), ("bob", CANARY)])
def test_who_does_not_is_told_what_the_broker_says(mechanism: str, user: str, password: str) -> None:
    link = server()
    with pytest.raises(PeerUntrusted, match="invalid user or password") as caught:
        run(link, mechanism, password, user)
    assert link.principal is None
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_server_that_does_not_know_the_password_is_not_believed(mechanism: str) -> None:
    with pytest.raises(PeerUntrusted, match="the server does not know the password"):
        run(server(is_impostor=True), mechanism)


def test_a_mechanism_that_is_not_there_is_named_with_those_that_are() -> None:
    link = Server({"SCRAM-SHA-256": scram(ScramMechanism.SHA_256)})
    with pytest.raises(PeerUntrusted, match=r"does not have sasl\.mechanism=PLAIN; it has SCRAM-SHA-256"):
        run(link, "PLAIN")
    assert link.asked == [ApiKey.SASL_HANDSHAKE], "no password is sent to somebody who cannot use it"


def test_a_broker_that_hangs_up() -> None:
    with pytest.raises(PeerUntrusted, match="does this listener have SASL"):
        run(Server({}, hangs_up=True), "PLAIN")
