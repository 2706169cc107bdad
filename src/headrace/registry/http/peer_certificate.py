"""The certificate of a client, on its way from TLS to the guard: the server itself does not hand it on."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.types import Scope

from headrace.registry.http.patient_protocol import PatientProtocol

_STATE: Final = "headrace.certificate"


class CertifiedProtocol(PatientProtocol):
    """One connection. What is in its state is in the scope of each of its requests."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in its base
        super().connection_made(transport)
        session: Any = transport.get_extra_info("ssl_object")
        certificate = None if session is None else session.getpeercert(binary_form=True)
        self.app_state = {**self.app_state, _STATE: certificate}


def certificate_in(scope: Scope) -> bytes | None:
    """DER, verified by TLS."""
    found: bytes | None = scope.get("state", {}).get(_STATE)
    return found
