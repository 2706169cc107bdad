"""A certificate becomes a principal."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import cast

import pytest

from headrace.broker.security.principals import principal_by
from headrace.core.errors import ClientError
from headrace.network.tls import TlsSocket
from headrace.security.principal import ANONYMOUS
from tests.certificates import Authority, chain


class Peer:
    """A socket, as far as its certificate is asked for."""

    def __init__(self, certificate: bytes | None) -> None:
        self._certificate = certificate

    def peer_certificate(self) -> bytes | None:
        return self._certificate


def peer(tmp_path: Path, name: str) -> TlsSocket:
    first = chain(Authority(tmp_path).issue(name)).partition("-----END CERTIFICATE-----")
    return cast("TlsSocket", Peer(ssl.PEM_cert_to_DER_cert(first[0] + first[1])))


def test_without_a_certificate_nobody_is_known() -> None:
    assert principal_by("DEFAULT")(cast("TlsSocket", Peer(None))) is ANONYMOUS


def test_by_default_it_is_the_whole_name(tmp_path: Path) -> None:
    principal = principal_by("DEFAULT")(peer(tmp_path, "alice"))
    assert principal.type == "User"
    assert principal.name.startswith("CN=alice,")


def test_rules_shorten_it(tmp_path: Path) -> None:
    assert str(principal_by("RULE:^CN=(.*?),.*$/$1/L")(peer(tmp_path, "ALICE"))) == "User:alice"


def test_a_name_that_no_rule_knows_is_not_let_in(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match=r"ssl\.principal\.mapping\.rules"):
        principal_by("RULE:^CN=bob,.*$/bob/")(peer(tmp_path, "alice"))
