"""A certificate that is replaced while the registry serves counts for connections that come after it."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from headrace.config.http_listener import Words, http_listener
from headrace.config.tls_properties import TlsProperties
from headrace.registry.certificates import Certificates
from headrace.tls.renewable import renewable
from tests.certificates import Authority


def properties(keys: Path, trust: Path) -> TlsProperties:
    given = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust),
    }
    words = Words("REGISTRY", "--listen", "--authentication", "--token-file")
    listener = http_listener(words, "https://127.0.0.1:0", ("mtls",), None, given)
    assert listener is not None
    assert listener.security is not None
    assert listener.security.tls is not None
    return listener.security.tls


async def served(server: asyncio.Server, trust: Path, client: Path) -> tuple[bytes | None, bytes]:
    """The server's certificate, and who it took the client for."""
    context = ssl.create_default_context(cafile=str(trust))
    context.load_cert_chain(str(client))
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    said = await reader.read()
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return shown, said


async def test_a_new_certificate_and_a_new_trust_store_count_at_once(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    keys, trust = tmp_path / "keys.pem", tmp_path / "trust.pem"
    keys.write_bytes(old.issue("registry").read_bytes())
    trust.write_bytes(old.pem)
    certificates = await asyncio.to_thread(Certificates, properties(keys, trust))

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.write(b"nobody" if peer is None else b"somebody")
        writer.close()

    context = renewable(lambda: certificates.context)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        before, said = await served(server, old.trust_store, old.issue("alice"))
        assert said == b"somebody"
        keys.write_bytes(b"nonsense")
        await asyncio.to_thread(certificates.look)
        assert (await served(server, old.trust_store, old.issue("alice")))[0] == before
        keys.write_bytes(new.issue("registry").read_bytes())
        trust.write_bytes(new.pem)
        await asyncio.to_thread(certificates.look)
        after, said = await served(server, new.trust_store, new.issue("alice"))
        assert said == b"somebody"
        assert after != before
        try:
            refused = (await served(server, new.trust_store, old.issue("alice")))[1]
        except OSError:  # told as an alert, once the client has sent its certificate
            refused = b""
        assert refused == b"", "whom only the old trust store trusted"
