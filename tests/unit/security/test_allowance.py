"""Allowances: who shares what, and what becomes of it when quotas change."""

from __future__ import annotations

from headrace.security import allowance
from headrace.security.allowance import Allowances
from headrace.security.quota_lookup import Entity

USER_ALICE: Entity = (("user", "alice"),)
DEFAULT_CLIENT: Entity = (("client-id", None),)


class Quotas(dict[Entity, dict[str, float]]):
    def of(self, entity: Entity) -> dict[str, float]:
        return self.get(entity, {})


def test_clients_share_an_allowance_if_they_share_the_entity() -> None:
    quotas = Quotas({USER_ALICE: {"producer_byte_rate": 10.0}, DEFAULT_CLIENT: {"consumer_byte_rate": 5.0}})
    allowances = Allowances(quotas.of)
    one, other = allowances.of("alice", "one", 0), allowances.of("alice", "other", 0)
    assert one.produce is not None
    assert one.produce is other.produce
    assert one.fetch is not None
    assert other.fetch is not None
    assert one.fetch is not other.fetch
    assert allowances.of("bob", "one", 0).fetch is one.fetch
    assert allowances.of("bob", "one", 0).produce is None
    assert one.request is None


def test_a_change_of_quotas_keeps_what_was_used() -> None:
    quotas = Quotas({USER_ALICE: {"producer_byte_rate": 10.0}})
    allowances = Allowances(quotas.of)
    before = allowances.of("alice", "", 0).produce
    assert before is not None
    assert before.charge(1000.0, 0) > 0
    quotas[USER_ALICE] = {"producer_byte_rate": 20.0}
    assert allowances.of("alice", "", 0).produce is before
    assert before.rate == 10.0
    allowances.look_up_again()
    after = allowances.of("alice", "", 0).produce
    assert after is before
    assert after.rate == 20.0
    assert after.charge(0.0, 0) > 0
    quotas.clear()
    allowances.look_up_again()
    assert allowances.of("alice", "", 0).produce is None


def test_client_ids_without_end_take_no_memory_without_end() -> None:
    each_of_a_user: Entity = (("client-id", None), ("user", None))
    allowances = Allowances(Quotas({each_of_a_user: {"producer_byte_rate": 10.0}}).of)
    debtor = allowances.of("u", "debtor", 0).produce
    assert debtor is not None
    debtor.charge(1e9, 0)
    for number in range(20 * allowance.MOST_CLIENTS):
        found = allowances.of("u", f"client-{number}", number * 20).produce
        assert found is not None
        found.charge(1.0, number * 20)
    assert len(allowances) < 3 * allowance.MOST_CLIENTS
    assert allowances.of("u", "debtor", 400_000).produce is debtor
