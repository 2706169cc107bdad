from __future__ import annotations

from headrace.broker.replicas.throttle import DirectionThrottles, ReplicationThrottles, SlidingRate, Throttle
from headrace.config.broker import BrokerConfig
from headrace.config.topic import TopicConfig, resolve_topic

BROKER = 101


def topic(**overrides: str) -> TopicConfig:
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    return resolve_topic(BrokerConfig.parse({}), {}, {}, named)


def config_with(**dynamic: str) -> BrokerConfig:
    named = {name.replace("_", "."): value for name, value in dynamic.items()}
    return BrokerConfig.parse({}).with_dynamic({}, named)


def test_nothing_recorded_is_never_too_much() -> None:
    assert SlidingRate().seconds_over(1.0, 5.0) == 0.0


def test_what_is_too_much_has_to_be_waited_off() -> None:
    rate = SlidingRate()
    rate.record(3_000, 10.0)
    assert rate.seconds_over(1_000, 10.0) == 2.0  # a second's worth may go at once
    assert rate.seconds_over(1_000, 11.5) == 1.5
    assert rate.seconds_over(1_000, 13.0) == 0.0
    assert rate.seconds_over(5_000, 10.0) == 0.0


def test_what_left_the_window_no_longer_counts() -> None:
    rate = SlidingRate()
    rate.record(1_000_000, 0.0)
    assert rate.seconds_over(1_000, 9.0) > 0
    assert rate.seconds_over(1_000, 10.1) == 0.0
    rate.record(10, 10.2)
    assert rate.seconds_over(1_000, 10.2) == 0.0


def test_the_rate_holds_over_a_long_time() -> None:
    """A fetcher that takes 200 bytes whenever it may, for a minute."""
    rate, sent, now = SlidingRate(), 0, 0.0
    while now < 60.0:
        wait = rate.seconds_over(1_000, now)
        if wait == 0.0:
            rate.record(200, now)
            sent += 200
            now += 0.01
        else:
            now += wait + 1e-9  # the clock of a test is exact, its sums are not
    assert 55_000 <= sent <= 66_000


def test_a_rate_of_zero_stops_everything_and_ends() -> None:
    throttle = Throttle(lambda *_: True)
    throttle.set_rate(0)
    assert throttle.is_limited
    throttle.record(1, 0.0)
    assert throttle.seconds_over(0.0) > 0


def test_a_low_rate_that_is_raised_counts_within_a_second() -> None:
    """A follower that had fetched 500 KB at a rate of 1 once waited for days, whatever the rate became."""
    throttle = Throttle(lambda *_: True)
    throttle.set_rate(1)
    throttle.record(500_000, 0.0)
    assert 0 < throttle.seconds_over(0.0) <= 1.0
    throttle.set_rate(1_000_000)
    assert throttle.seconds_over(1.0) == 0.0


def test_who_is_throttled() -> None:
    leader = DirectionThrottles(BROKER, for_leader=True).operator
    follower = DirectionThrottles(BROKER, for_leader=False).operator
    everything = topic(leader_replication_throttled_replicas="*")
    listed = topic(follower_replication_throttled_replicas="0:101,1:102,11:101")
    assert leader.covers(everything, 7)
    assert not follower.covers(everything, 7)
    assert [follower.covers(listed, index) for index in (0, 1, 2, 11)] == [True, False, False, True]
    assert not leader.covers(listed, 0)
    assert not leader.covers(topic(), 0)


def test_rates_follow_the_configuration() -> None:
    throttles = ReplicationThrottles(BROKER)

    def limited(config: BrokerConfig) -> tuple[bool, bool]:
        throttles.update(config)
        return throttles.leader.is_limited, throttles.follower.is_limited

    assert limited(config_with()) == (False, False)
    throttles.leader.operator.record(10_000_000, 1.0)
    assert throttles.leader.operator.seconds_over(1.0) == 0.0
    assert limited(config_with(leader_replication_throttled_rate="1000")) == (True, False)
    assert throttles.leader.operator.seconds_over(1.0) > 0
    assert limited(config_with(follower_replication_throttled_rate="1000")) == (False, True)


def test_self_balancing_has_a_rate_of_its_own() -> None:
    throttles = ReplicationThrottles(BROKER)
    moved = topic(headrace_balance_moved_replicas="0:101,3:102")
    throttles.update(config_with(headrace_balance_bytes_per_second="1000"))
    assert not throttles.follower.is_limited, "it is not enabled"
    throttles.update(config_with(headrace_balance_enable="true", headrace_balance_bytes_per_second="1000"))
    assert not throttles.follower.is_limited, "nothing is moved"
    throttles.watch("orders", moved)
    follower, leader = throttles.follower, throttles.leader
    assert [follower.throttle_of(moved, index) is not None for index in (0, 1, 3)] == [True, False, False]
    # At the leader's side any replica that is added to the partition.
    assert [leader.throttle_of(moved, index) is not None for index in (0, 1, 3)] == [True, False, True]
    assert leader.throttle_of(topic(), 0) is None
    throttle = follower.throttle_of(moved, 0)
    assert throttle is not None
    throttle.record(10_000, 0.0)
    assert throttle.seconds_over(0.0) == 1.0


def test_what_an_operator_says_of_a_replica_goes_first() -> None:
    throttles = ReplicationThrottles(BROKER)
    both = topic(headrace_balance_moved_replicas="0:101", follower_replication_throttled_replicas="0:101")
    enabled = {"headrace_balance_enable": "true"}
    throttles.watch("orders", both)
    throttles.update(config_with(**enabled))
    assert throttles.follower.throttle_of(both, 0) is throttles.follower.self_balancing
    throttles.update(config_with(**enabled, follower_replication_throttled_rate="5"))
    assert throttles.follower.throttle_of(both, 0) is throttles.follower.operator
    throttles.update(config_with(**enabled))
    throttles.watch("orders", None)
    assert not throttles.follower.is_limited
