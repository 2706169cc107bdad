from __future__ import annotations

from headrace.broker.replicas.throttle import ReplicationThrottles, SlidingRate, Throttle
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
    throttle = Throttle(BROKER, for_leader=True)
    throttle.set_rate(0)
    assert throttle.is_limited
    throttle.record(1, 0.0)
    assert throttle.seconds_over(0.0) > 0


def test_a_low_rate_that_is_raised_counts_within_a_second() -> None:
    """A follower that had fetched 500 KB at a rate of 1 once waited for days, whatever the rate became."""
    throttle = Throttle(BROKER, for_leader=False)
    throttle.set_rate(1)
    throttle.record(500_000, 0.0)
    assert 0 < throttle.seconds_over(0.0) <= 1.0
    throttle.set_rate(1_000_000)
    assert throttle.seconds_over(1.0) == 0.0


def test_who_is_throttled() -> None:
    leader = Throttle(BROKER, for_leader=True)
    follower = Throttle(BROKER, for_leader=False)
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
    throttles.leader.record(10_000_000, 1.0)
    assert throttles.leader.seconds_over(1.0) == 0.0
    assert limited(config_with(leader_replication_throttled_rate="1000")) == (True, False)
    assert throttles.leader.seconds_over(1.0) > 0
    assert limited(config_with(follower_replication_throttled_rate="1000")) == (False, True)
