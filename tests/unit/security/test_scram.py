"""SCRAM's server: vectors, other people's clients, and what must not get in."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Callable
from typing import NamedTuple

import pytest
from aiokafka.conn import ScramAuthenticator
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.completion import Completion
from headrace.security.mechanism import INVALID_CREDENTIALS, Authenticated, AuthenticationFailed, Step
from headrace.security.principal import Principal, user
from headrace.security.scram import ScramExchange, TokenCredential
from headrace.security.scram_client import ScramClient
from headrace.security.scram_credential import (
    DEFAULT_SALT_BYTES,
    ScramCredential,
    ScramMechanism,
    salted_password,
)
from headrace.security.scram_messages import ClientFinal, ClientFirst, ServerFirst

with warnings.catch_warnings():
    # It loads its schemas, while it is imported, in a way that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.net.sasl.scram import ScramClient as KafkaPythonClient

SECRET = b"of the cluster"
SALT = bytes(range(16))
BOTH = pytest.mark.parametrize("mechanism", ScramMechanism, ids=lambda each: each.value)


class Vector(NamedTuple):
    mechanism: ScramMechanism
    server_nonce: str
    salt: str
    proof: str
    signature: str


RFC_7677 = Vector(
    ScramMechanism.SHA_256,
    "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
    "W22ZaJ0SNY7soEsUEjb6gQ==",
    "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
# No RFC has one for SHA-512: this is what Kafka 4.3.1 computes for the same names and nonces.
KAFKAS_SHA_512 = Vector(
    ScramMechanism.SHA_512,
    RFC_7677.server_nonce,
    RFC_7677.salt,
    "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==",
    "ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==",
)
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"


def credential(mechanism: ScramMechanism, password: str = "pencil") -> ScramCredential:
    return ScramCredential.of_password(mechanism, password, SALT, 4096)


CREDENTIALS = {mechanism: credential(mechanism) for mechanism in ScramMechanism}


def exchange(
    mechanism: ScramMechanism = ScramMechanism.SHA_256,
    find: Callable[[str], ScramCredential | None] | None = None,
    *,
    nonce: str = "server",
    find_token: Callable[[str], TokenCredential | None] | None = None,
) -> ScramExchange:
    users = {"user": CREDENTIALS[mechanism], "a,b=c": CREDENTIALS[mechanism]}
    return ScramExchange(mechanism, find or users.get, nonce, SECRET, find_token)


def authenticate(server: ScramExchange, client: ScramClient) -> Authenticated | None:
    last = server.step(client.final(server.step(client.first()).reply))
    client.verify(last.reply)
    return last.authenticated


@pytest.mark.parametrize("vector", [RFC_7677, KAFKAS_SHA_512], ids=["RFC 7677", "Kafka"])
def test_each_message_is_as_in_the_vector(vector: Vector) -> None:
    salt = base64.b64decode(vector.salt)
    stored = ScramCredential.of_password(vector.mechanism, "pencil", salt, 4096)
    server = ScramExchange(vector.mechanism, {"user": stored}.get, vector.server_nonce, SECRET)
    client = ScramClient(vector.mechanism, "user", "pencil", CLIENT_NONCE)
    nonce = CLIENT_NONCE + vector.server_nonce

    assert client.first() == f"n,,n=user,r={CLIENT_NONCE}".encode()
    first = server.step(client.first())
    assert first == Step(f"r={nonce},s={vector.salt},i=4096".encode())
    final = client.final(first.reply)
    assert final == f"c=biws,r={nonce},p={vector.proof}".encode()
    last = server.step(final)
    assert last == Step(f"v={vector.signature}".encode(), Authenticated(user("user")))
    client.verify(last.reply)


@BOTH
def test_kafka_python_gets_in(mechanism: ScramMechanism) -> None:
    server = exchange(mechanism)
    client = KafkaPythonClient("user", "pencil", mechanism.value)
    client.process_server_first_message(server.step(client.first_message()).reply)
    last = server.step(client.final_message())
    client.process_server_final_message(last.reply)
    assert last.authenticated == Authenticated(user("user"))


@BOTH
@pytest.mark.parametrize("name", ["user", "a,b=c"])
def test_aiokafka_gets_in(mechanism: ScramMechanism, name: str) -> None:
    server = exchange(mechanism)
    client = ScramAuthenticator(
        loop=None, sasl_plain_username=name, sasl_plain_password="pencil", sasl_mechanism=mechanism.value
    )
    client.process_server_first_message(server.step(client.first_message().encode()).reply.decode())
    last = server.step(client.final_message().encode())
    client.process_server_final_message(last.reply.decode())
    assert last.authenticated == Authenticated(user(name))


@given(
    name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=50)
)
def test_any_name_is_understood(name: str) -> None:
    parsed = ClientFirst.parse(ScramClient(ScramMechanism.SHA_256, name, "x", "nonce").first())
    assert (parsed.name, parsed.nonce, parsed.gs2_header) == (name, "nonce", "n,,")


def test_an_escaped_equals_sign_does_not_begin_another_escape() -> None:
    assert ClientFirst.parse(b"n,,n==3D2C=2C,r=x").name == "=2C,"


@BOTH
def test_an_unknown_user_fails_like_a_wrong_password(mechanism: ScramMechanism) -> None:
    replies, errors = [], []
    for name in ("user", "nobody", "nobody"):
        server = exchange(mechanism)
        client = ScramClient(mechanism, name, "wrong", "client")
        reply = server.step(client.first()).reply
        replies.append(ServerFirst.parse(reply))
        with pytest.raises(AuthenticationFailed) as raised:
            server.step(client.final(reply))
        errors.append(str(raised.value))
    known, unknown, again = replies
    assert set(errors) == {INVALID_CREDENTIALS}
    assert unknown == again, "a salt that changes tells that nobody has it"
    assert (unknown.nonce, unknown.iterations) == (known.nonce, known.iterations)
    assert len(unknown.salt) == len(known.salt) == DEFAULT_SALT_BYTES
    assert unknown.salt != known.salt


def test_unknown_users_have_salts_of_their_own_in_each_cluster() -> None:
    def salt(name: str, secret: bytes, mechanism: ScramMechanism = ScramMechanism.SHA_256) -> bytes:
        server = ScramExchange(mechanism, lambda _: None, "server", secret)
        return ServerFirst.parse(server.step(f"n,,n={name},r=c".encode()).reply).salt

    found = {salt("a", b"1"), salt("b", b"1"), salt("a", b"2"), salt("a", b"1", ScramMechanism.SHA_512)}
    assert len(found) == 4


def test_whoever_knows_the_invented_key_is_still_nobody() -> None:
    """Even a proof that verifies does not make somebody exist."""
    server = exchange()
    server.step(b"n,,n=nobody,r=client")
    assert server._due is not None
    known = ScramCredential.of_password(ScramMechanism.SHA_256, "pencil", server._due.credential.salt, 4096)
    server._due = server._due._replace(credential=known)
    client = ScramClient(ScramMechanism.SHA_256, "nobody", "pencil", "client")
    with pytest.raises(AuthenticationFailed):
        server.step(client.final(str(server._due.reply).encode()))


@pytest.mark.parametrize(
    "stored",
    [
        CREDENTIALS[ScramMechanism.SHA_512],
        ScramCredential(SALT, 1, bytes(32), bytes(32)),
        ScramCredential(SALT, 16385, bytes(32), bytes(32)),
        ScramCredential(b"", 4096, bytes(32), bytes(32)),
        ScramCredential(SALT, 4096, b"", b""),
    ],
)
def test_a_credential_that_was_stored_wrongly_authenticates_nobody(stored: ScramCredential) -> None:
    server = exchange(find=lambda _: stored)
    reply = ServerFirst.parse(server.step(b"n,,n=user,r=client").reply)
    assert reply.iterations == 4096
    assert server._due is not None
    assert server._due.outcome is None


def final_of(server: ScramExchange, prefix: str = "", binding: bytes = b"n,,", first: str = "n,,") -> bytes:
    """A final message with a right proof, over a nonce or a binding that need not be right."""
    mechanism, bare = ScramMechanism.SHA_256, "n=user,r=client"
    reply = server.step(f"{first}{bare}".encode()).reply.decode()
    nonce = ServerFirst.parse(reply.encode()).nonce
    without_proof = f"c={base64.b64encode(binding).decode()},r={prefix or nonce}"
    salted = salted_password(mechanism, "pencil", SALT, 4096)
    key = mechanism.hmac(salted, b"Client Key")
    signature = mechanism.hmac(mechanism.digest(key), f"{bare},{reply},{without_proof}".encode())
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def test_the_doubled_nonce_of_old_librdkafka_is_taken() -> None:
    server = exchange()
    assert server.step(final_of(server, "clientclientserver")).authenticated == Authenticated(user("user"))


@pytest.mark.parametrize("nonce", ["client", "server", "clientserverx", "clientServer", "otherserver", "x"])
def test_a_final_nonce_that_is_not_of_this_exchange_is_refused(nonce: str) -> None:
    server = exchange()
    final = final_of(server, nonce)
    with pytest.raises(AuthenticationFailed):
        server.step(final)


def test_a_final_message_cannot_be_replayed() -> None:
    old = exchange(nonce="old")
    final = final_of(old)
    assert old.step(final).authenticated is not None
    server = exchange(nonce="new")
    server.step(b"n,,n=user,r=client")
    with pytest.raises(AuthenticationFailed):
        server.step(final)


@pytest.mark.parametrize(
    ("first", "binding"), [("n,,", b"n,,"), ("y,,", b"y,,"), ("n,a=user,", b"n,a=user,")]
)
def test_the_binding_repeats_the_header(first: str, binding: bytes) -> None:
    server = exchange()
    assert server.step(final_of(server, binding=binding, first=first)).authenticated is not None


@pytest.mark.parametrize(
    ("first", "binding"), [("n,,", b"y,,"), ("y,,", b"n,,"), ("n,,", b""), ("n,,", b"p=tls,,")]
)
def test_another_binding_is_refused(first: str, binding: bytes) -> None:
    server = exchange()
    final = final_of(server, binding=binding, first=first)
    with pytest.raises(AuthenticationFailed):
        server.step(final)


@pytest.mark.parametrize("name", ["user", "nobody"])
def test_another_authorization_id_is_refused_before_anybody_is_looked_up(name: str) -> None:
    def find(_: str) -> None:
        pytest.fail("looked up")

    with pytest.raises(AuthenticationFailed, match="authorization id"):
        exchange(find=find).step(f"n,a=other,n={name},r=client".encode())


MALFORMED_FIRST = [
    *("", "n", "n,", "n,,", "n,,n=user", "n,,r=x,n=user", "n,,n=,r=x", "n,,n=user,r=", "n,,n=user,r=a b"),
    *("n,,n=us=er,r=x", "n,,n=us=2cer,r=x", "n,,n=us=4Aer,r=x", "n,,m=ext,n=user,r=x", "p=tls,,n=user,r=x"),
    *("x,,n=user,r=x", "n,user,n=user,r=x", "n,a=,n=user,r=x", "n,,n=us\0er,r=x", "n,,n=user,r=\u00e4"),
    *("n,,n=user,r=x,y", "n,,n=user,r=x,y=", "n,,n=user,r=x,1=2", "n,,n=user,r=x,a=1,a=2", "n,,n=user,r=x,"),
    *("n,,n=user,r=x" + ",a=1" * 17, "n,,n=" + "u" * 1025 + ",r=x", "n,,n=user,r=" + "x" * 1025),
    "n,,n=user,r=x,a=" + "y" * 9000,
]


@pytest.mark.parametrize("message", MALFORMED_FIRST, ids=range(len(MALFORMED_FIRST)))
def test_a_malformed_first_message_is_refused(message: str) -> None:
    with pytest.raises(AuthenticationFailed, match="malformed SCRAM client first message"):
        exchange().step(message.encode())


@pytest.mark.parametrize(
    "message",
    [
        *("", "c=biws", "c=biws,r=clientserver", "r=clientserver,c=biws,p=AAAA", "c=biws,r=,p=AAAA"),
        *("c=b!ws,r=clientserver,p=AAAA", "c=biws,r=clientserver,p=A", "c=biws,r=clientserver,p=\u00e4"),
        *("c=biws,r=clientserver,p=AAAA,x=y", "c=biws,r=clientserver,x,p=AAAA", "c=biws,p=AAAA"),
    ],
)
def test_a_malformed_final_message_is_refused(message: str) -> None:
    server = exchange()
    server.step(b"n,,n=user,r=client")
    with pytest.raises(AuthenticationFailed, match="malformed SCRAM client final message"):
        server.step(message.encode())


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_proof_of_another_size_is_refused(size: int) -> None:
    server = exchange()
    server.step(b"n,,n=user,r=client")
    with pytest.raises(AuthenticationFailed):
        server.step(b"c=biws,r=clientserver,p=" + base64.b64encode(bytes(size)))


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_no_other_bytes_get_in(first: bytes, final: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        exchange().step(first)
    server = exchange()
    server.step(b"n,,n=user,r=client")
    with pytest.raises(AuthenticationFailed):
        server.step(final)


@given(at=st.integers(0, 31), bit=st.integers(0, 7))
def test_each_bit_of_the_proof_counts(at: int, bit: int) -> None:
    server = exchange()
    final = ClientFinal.parse(final_of(server))
    proof = bytearray(final.proof)
    proof[at] ^= 1 << bit
    with pytest.raises(AuthenticationFailed):
        server.step(f"{final.without_proof},p={base64.b64encode(proof).decode()}".encode())


def test_an_exchange_is_over_after_its_last_step_and_after_a_failure() -> None:
    server = exchange()
    final = final_of(server)
    server.step(final)
    failed = exchange()
    with pytest.raises(AuthenticationFailed):
        failed.step(b"nonsense")
    for each in (server, failed):
        for token in (b"n,,n=user,r=client", final):
            with pytest.raises(AuthenticationFailed):
                each.step(token)


OWNER = Principal("User", "owner")


def token_credentials(token_id: str) -> TokenCredential | None:
    return TokenCredential(CREDENTIALS[ScramMechanism.SHA_256], OWNER, 5000) if token_id == "id-1" else None


def test_a_delegation_token_authenticates_its_owner() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "id-1", "pencil", "client", is_token=True)
    assert client.first() == b"n,,n=id-1,r=client,tokenauth=true"
    server = exchange(find_token=token_credentials)
    assert authenticate(server, client) == Authenticated(OWNER, 5000, "id-1")


@pytest.mark.parametrize(
    ("name", "is_token", "tokens"),
    [("id-2", True, True), ("user", True, True), ("id-1", False, True), ("id-1", True, False)],
)
def test_users_are_no_tokens_and_tokens_no_users(name: str, is_token: bool, tokens: bool) -> None:
    server = exchange(find_token=token_credentials if tokens else None)
    client = ScramClient(ScramMechanism.SHA_256, name, "pencil", "client", is_token=is_token)
    with pytest.raises(AuthenticationFailed) as raised:
        authenticate(server, client)
    assert str(raised.value) == INVALID_CREDENTIALS


def test_only_the_first_message_with_a_token_is_prepared() -> None:
    asked: list[str] = []

    def derive(token_id: str) -> Completion[None]:
        asked.append(token_id)
        return Completion()

    server = ScramExchange(
        ScramMechanism.SHA_256, lambda _: None, "server", SECRET, token_credentials, derive
    )
    for other in (b"", b"n,,n=tokenauth,r=client", b"n,,n=id-1,r=client,tokenauth=false", b"tokenauth=true"):
        assert server.prepare(other) is None
    client = ScramClient(ScramMechanism.SHA_256, "id-1", "pencil", "client", is_token=True)
    assert server.prepare(client.first()) is not None
    final = client.final(server.step(client.first()).reply)
    assert server.prepare(final) is None
    assert asked == ["id-1"]


def test_other_extensions_are_ignored_and_signed() -> None:
    parsed = ClientFirst.parse(b"n,,n=user,r=client,tokenauth=false,other=x=y")
    assert parsed.extensions == {"tokenauth": "false", "other": "x=y"}
    assert not parsed.wants_token
    assert parsed.bare.endswith("other=x=y")


def test_a_server_needs_a_nonce() -> None:
    with pytest.raises(ValueError, match="nonce"):
        exchange(nonce="")


def test_no_secret_is_in_a_text() -> None:
    stored = ScramCredential(b"canary-salt", 4096, b"canary-stored", b"canary-server")
    client = ScramClient(ScramMechanism.SHA_256, "user", "canary-password", "nonce")
    final = ClientFinal(b"n,,", "nonce", b"canary-proof", "c=biws,r=nonce")
    step = Step(b"canary-reply")
    for each in (
        stored,
        client,
        final,
        step,
        TokenCredential(stored, OWNER),
        exchange(find=lambda _: stored),
    ):
        assert "canary" not in repr(each)
        assert "canary" not in str(each)
