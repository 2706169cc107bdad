"""No API without a row in the table; no guard where there is no authorizer."""

from __future__ import annotations

import socket
from typing import cast

import pytest

from headrace.broker.authorization.guard import NotGuarded, require_all
from headrace.broker.authorization.table import GUARDS
from headrace.broker.quotas.client_quotas import ClientQuotas
from headrace.broker.requests.apis import BY_KEY
from headrace.broker.requests.dispatcher import Dispatcher
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from tests.unit.broker.authorization.realm import Realm, rights_by


@pytest.mark.parametrize("key", sorted(BY_KEY))
def test_an_api_without_a_row_cannot_be_served(realm: Realm, key: int) -> None:
    guards = {each: guard for each, guard in GUARDS.items() if each != key}
    with pytest.raises(NotGuarded, match=f"{ApiKey(key).name}: no row"):
        Dispatcher(realm.context, BY_KEY, guards, cast(ClientQuotas, None))


def test_the_table_has_all_rows() -> None:
    require_all(GUARDS, BY_KEY)


def test_without_an_authorizer_no_guard_is_asked(realm: Realm) -> None:
    class Asked(Exception):
        """The guard was."""

    def guard(*_: object) -> None:
        raise Asked

    guards = {int(ApiKey.LIST_OFFSETS): guard}
    assert realm.ask(ListOffsetsRequest(), 5, None, guards).topics == []  # type: ignore[arg-type]  # one row
    with pytest.raises(Asked):
        realm.ask(ListOffsetsRequest(), 5, rights_by([]), guards)  # type: ignore[arg-type]  # one row


@pytest.mark.parametrize("key", [ApiKey.PUSH_TELEMETRY, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS])
def test_telemetry_of_clients_is_not_taken(
    realm: Realm, key: ApiKey, caplog: pytest.LogCaptureFixture
) -> None:
    """What it carries is compressed, and could become anything: it is refused before it is looked at."""
    assert key not in BY_KEY
    assert key not in realm.context.served_versions
    frame = key.to_bytes(2, "big") + b"\0\0\0\0\0\x01\xff\xff\0" + b"\xff" * 100
    host, port = realm.cluster.bootstrap.split(":")
    with socket.create_connection((host, int(port)), 60) as link, caplog.at_level("INFO", "headrace"):
        link.sendall(len(frame).to_bytes(4, "big") + frame)
        assert link.recv(1) == b""
    assert f"API {int(key)} is not served" in caplog.text
