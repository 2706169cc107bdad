"""Allowances: whoever waits as long as it is told stays within its quota, and gets all of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.security import allowance
from headrace.security.allowance import Allowance, Allowances
from headrace.security.quota_lookup import Entity
from headrace.security.quota_meter import WINDOW_MS, WINDOWS

BURST_MS = WINDOWS * WINDOW_MS
USER_ALICE: Entity = (("user", "alice"),)
DEFAULT_CLIENT: Entity = (("client-id", None),)


@given(
    st.floats(10, 1e7),
    st.lists(st.floats(0.001, 20), min_size=20, max_size=200),
    st.integers(0, 10**9),
)
def test_whoever_obeys_is_held_to_the_bound(bound: float, seconds: list[float], start_ms: int) -> None:
    """Each amount is so many seconds of the bound. What has been used is never more than the bound allows in
    the time, a burst, and the last amount."""
    allowed, now_ms, used = Allowance(bound, start_ms), start_ms, 0.0
    for each in seconds:
        amount = each * bound
        used += amount
        held_ms = allowed.charge(amount, now_ms)
        most = bound * (now_ms - start_ms + BURST_MS) / 1000 + amount
        assert used <= most * 1.01
        now_ms += max(held_ms, 1)


@given(st.floats(1000, 1e7), st.floats(0.01, 3))
def test_a_greedy_client_gets_what_its_quota_says(bound: float, seconds: float) -> None:
    """Without end it is the bound, within a tenth."""
    allowed, now_ms, used = Allowance(bound, 0), 0, 0.0
    begun_ms, begun = 0, 0.0
    while now_ms < 300_000:
        if not begun_ms and now_ms >= 60_000:  # the first burst is over
            begun_ms, begun = now_ms, used
        used += seconds * bound
        now_ms += max(allowed.charge(seconds * bound, now_ms), 1)
    rate = (used - begun) * 1000 / (now_ms - begun_ms)
    assert 0.9 * bound <= rate <= 1.1 * bound


def test_a_long_debt_is_not_forgotten_with_its_windows() -> None:
    allowed = Allowance(1.0, 0)
    assert allowed.charge(1000.0, 0) > 900_000
    after_all_windows = 2 * BURST_MS
    assert allowed.held_ms(after_all_windows) > 900_000 - after_all_windows
    assert not allowed.is_idle(after_all_windows)


def test_another_bound_forgives_the_waiting_and_not_what_was_used() -> None:
    allowed = Allowance(1.0, 0)
    allowed.charge(1000.0, 0)
    allowed.change_bound(50.0, 10)
    assert allowed.held_ms(10) == 0
    assert allowed.charge(0.0, 10) > 5_000
    allowed.change_bound(50.0, 20)  # the same
    assert allowed.held_ms(20) > 0


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
    assert before.bound == 10.0
    allowances.look_up_again()
    after = allowances.of("alice", "", 0).produce
    assert after is before
    assert after.bound == 20.0
    assert after.charge(0.0, 0) > 0
    quotas.clear()
    allowances.look_up_again()
    assert allowances.of("alice", "", 0).produce is None


def test_client_ids_without_end_take_no_memory_without_end() -> None:
    allowances = Allowances(Quotas({DEFAULT_CLIENT: {"producer_byte_rate": 10.0}}).of)
    debtor = allowances.of("u", "debtor", 0).produce
    assert debtor is not None
    debtor.charge(1e9, 0)
    for number in range(20 * allowance.MOST_CLIENTS):
        found = allowances.of("u", f"client-{number}", number * 20).produce
        assert found is not None
        found.charge(1.0, number * 20)
    assert len(allowances) < 3 * allowance.MOST_CLIENTS
    assert allowances.of("u", "debtor", 400_000).produce is debtor
