"""SCRAM's client: what it does not take from a server."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.security.mechanism import AuthenticationFailed
from headrace.security.scram import ScramExchange
from headrace.security.scram_client import ScramClient
from headrace.security.scram_credential import ScramCredential, ScramMechanism

SALT = base64.b64encode(bytes(16)).decode()


def client() -> ScramClient:
    return ScramClient(ScramMechanism.SHA_256, "user", "pencil", "client")


@pytest.mark.parametrize("iterations", [4096, 16384])
def test_iterations_within_the_bounds_are_made(iterations: int) -> None:
    final = client().final(f"r=clientserver,s={SALT},i={iterations}".encode())
    assert final.startswith(b"c=biws,r=clientserver,p=")


@pytest.mark.parametrize("iterations", [1, 4095, 16385, 999_999_999])
def test_a_server_cannot_ask_for_too_few_or_too_many_iterations(iterations: int) -> None:
    with pytest.raises(AuthenticationFailed, match="iterations"):
        client().final(f"r=clientserver,s={SALT},i={iterations}".encode())


@pytest.mark.parametrize(
    "message",
    [
        *("", "r=clientserver", f"s={SALT},r=clientserver,i=4096", f"r=clientserver,s={SALT},i=-4096"),
        *(
            f"r=clientserver,s={SALT},i=04096",
            f"r=clientserver,s={SALT},i=4096000000",
            "r=clientserver,s=,i=4096",
        ),
        *(
            "r=clientserver,s=!,i=4096",
            f"m=x,r=clientserver,s={SALT},i=4096",
            f"r=client server,s={SALT},i=4096",
        ),
        "e=other-error",
    ],
)
def test_a_malformed_first_message_is_refused(message: str) -> None:
    with pytest.raises(AuthenticationFailed, match="malformed SCRAM server first message"):
        client().final(message.encode())


@pytest.mark.parametrize("nonce", ["client", "other", "xclientserver"])
def test_a_nonce_that_does_not_follow_ours_is_refused(nonce: str) -> None:
    with pytest.raises(AuthenticationFailed, match="nonce"):
        client().final(f"r={nonce},s={SALT},i=4096".encode())


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    for final in (b"v=" + base64.b64encode(bytes(32)), b"v="):
        ours = client()
        ours.final(f"r=clientserver,s={SALT},i=4096".encode())
        with pytest.raises(AuthenticationFailed, match="does not know the password"):
            ours.verify(final)


def test_a_server_that_says_an_error_is_not_repeated() -> None:
    ours = client()
    ours.final(f"r=clientserver,s={SALT},i=4096".encode())
    with pytest.raises(AuthenticationFailed) as raised:
        ours.verify(b"e=canary")
    assert "canary" not in str(raised.value)


def test_a_signature_before_its_proof_is_refused() -> None:
    with pytest.raises(AuthenticationFailed):
        client().verify(b"v=")


def test_a_signature_counts_once() -> None:
    stored = ScramCredential.of_password(ScramMechanism.SHA_256, "pencil", bytes(16), 4096)
    server = ScramExchange(ScramMechanism.SHA_256, {"user": stored}.get, "server", b"secret")
    ours = client()
    last = server.step(ours.final(server.step(ours.first()).reply)).reply
    ours.verify(last)
    with pytest.raises(AuthenticationFailed):
        ours.verify(last)


@given(st.binary(max_size=60))
def test_no_other_bytes_are_a_signature(raw: bytes) -> None:
    ours = client()
    ours._signature = bytes(range(32))
    with pytest.raises(AuthenticationFailed):
        ours.verify(raw)
