"""A client by hand: what no client library would ever send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.kerberos.realm import NAME
from tests.wire import Wire


class Initiator:
    """The client's side of a context, with a ticket for `service` that the KDC has given just now."""

    def __init__(
        self, keytab: Path, principal: str, service: str = "kafka/localhost", *, is_mutual: bool = False
    ) -> None:
        from gssapi import raw

        self._raw = raw
        kind = raw.NameType.kerberos_principal
        name = raw.import_name(f"{principal}@{NAME}".encode(), kind)
        tickets = keytab.with_suffix(f".{service.replace('/', '-')}.tickets")
        tickets.unlink(missing_ok=True)
        store = {b"client_keytab": f"FILE:{keytab}".encode(), b"ccache": f"FILE:{tickets}".encode()}
        self._credentials = raw.acquire_cred_from(
            store, name, None, [raw.MechType.kerberos], "initiate"
        ).creds
        self._target = raw.import_name(f"{service}@{NAME}".encode(), kind)
        flags = [raw.RequirementFlag.integrity]
        self._flags = [*flags, raw.RequirementFlag.mutual_authentication] if is_mutual else flags
        self.is_mutual = is_mutual
        self._context: Any = None

    def token(self, answer: bytes | None = None) -> bytes:
        done = self._raw.init_sec_context(
            self._target,
            self._credentials,
            self._context,
            self._raw.MechType.kerberos,
            self._flags,
            input_token=answer,
        )
        self._context = done.context
        return done.token or b""

    def unwrap(self, token: bytes) -> bytes:
        return bytes(self._raw.unwrap(self._context, token).message)

    def choice(self, authorization_id: str = "", layer: int = 1) -> bytes:
        message = bytes([layer, 0, 0, 0]) + authorization_id.encode()
        return bytes(self._raw.wrap(self._context, message, False).message)


class Session(Wire):
    def __init__(self, port: int) -> None:
        super().__init__(port, host="localhost", timeout=60)

    def handshake(self) -> None:
        told = self.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1, SaslHandshakeResponse)
        assert (told.error_code, told.mechanisms) == (0, ["GSSAPI"])

    def send_token(self, token: bytes) -> SaslAuthenticateResponse:
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=token), 1, SaslAuthenticateResponse)
        assert isinstance(answer, SaslAuthenticateResponse)
        return answer

    def offered(self, initiator: Initiator) -> bytes:
        """What the broker offers once the context is established."""
        self.handshake()
        answer = self.send_token(initiator.token())
        assert answer.error_code == 0, answer.error_message
        if initiator.is_mutual:
            assert initiator.token(bytes(answer.auth_bytes)) == b""
            answer = self.send_token(b"")
            assert answer.error_code == 0, answer.error_message
        return initiator.unwrap(bytes(answer.auth_bytes))

    def log_in(self, initiator: Initiator, authorization_id: str = "") -> SaslAuthenticateResponse:
        self.offered(initiator)
        return self.send_token(initiator.choice(authorization_id))

    def topics(self) -> list[str]:
        """Those that the user may describe."""
        told = self.ask(MetadataRequest(topics=None), 9, MetadataResponse)
        return sorted(each.name for each in told.topics)

    def is_served(self) -> bool:
        try:
            self.topics()
        except (EOFError, ConnectionError):
            return False
        return True
