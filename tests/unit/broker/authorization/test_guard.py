"""No API without a row in the table; no guard where there is no authorizer."""

from __future__ import annotations

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
