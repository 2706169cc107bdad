"""The registry's certificate: loaded at the start, looked at every ten seconds, replaced while it serves."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final

from headrace.config.tls_properties import TlsProperties
from headrace.core.errors import ConfigError
from headrace.tls.contexts import server_context
from headrace.tls.file_stamps import stamp_of
from headrace.tls.handshake import prove
from headrace.tls.stores import read_identity, read_trusted

log = logging.getLogger("headrace.registry")

LOOK_SECONDS: Final = 10.0


class Certificates:
    def __init__(self, properties: TlsProperties) -> None:
        """Blocking. Raises ConfigError."""
        self._properties = properties
        self._stamp = stamp_of(properties)
        self.context = _loaded(properties)
        """For connections that begin now."""

    async def follow(self) -> None:
        """For ever. A file that cannot be used changes nothing, and is told of once."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await asyncio.to_thread(self.look)

    def look(self) -> None:
        stamp = stamp_of(self._properties)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self.context = _loaded(self._properties)
        except ConfigError as error:
            log.error("certificate not reloaded: the old one stays", extra={"error": str(error)})
        else:
            log.info("certificate reloaded")


def _loaded(properties: TlsProperties) -> ssl.SSLContext:
    identity = read_identity(properties.key_store)
    trusted = read_trusted(properties.trust_store) if properties.trust_store.is_there else None
    prove(properties, identity)
    return server_context(properties, identity, trusted)
