"""What a dialer needs to protect its links: OpenSSL's context, and who we are."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from headrace.client.authentication import authenticate
from headrace.client.credentials import Credentials
from headrace.core.ports_network import Link


@dataclass(frozen=True, slots=True)
class SecureLinks:
    """A `client.link.LinkSecurity`. It does not change: a reload puts another in its place."""

    context: ssl.SSLContext | None
    credentials: Credentials | None

    async def authenticate(self, link: Link, peer: str, timeout: float) -> None:
        if self.credentials is not None:
            await authenticate(link, peer, self.credentials, timeout)
