"""What is said of a judged cluster, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from headrace.client import health
from headrace.client.broker_health import BrokerHealth
from headrace.client.findings import findings
from headrace.client.health import BrokerView, ClusterView, Health, Observation
from headrace.client.log_dirs import LogDirectory
from headrace.client.topics import PartitionState, TopicState
from headrace.config.health import DAMAGE, FENCED, QUARANTINED, growth_of

REACHES = BrokerHealth(True, {"zookeeper.answers": "true", "zookeeper.servers": "zk:2181"})
CUT_OFF = BrokerHealth(True, {"zookeeper.answers": "false", "zookeeper.servers": "zk:2181"})
SILENT = BrokerHealth(False)


def judged(brokers: Mapping[int, BrokerHealth], topics: list[TopicState] | None = None) -> Health:
    views = [BrokerView(number, "h", 9090 + number, None, True) for number in brokers]
    return health.judge(Observation(ClusterView("id", 1, views), topics or [], {}, {}, {}, brokers))


def test_all_reach_zookeeper_or_there_is_none() -> None:
    assert judged({1: REACHES, 2: REACHES}).verdict == "healthy"
    assert judged({1: BrokerHealth(True)}).verdict == "healthy"
    assert findings(judged({1: BrokerHealth(True)})) == []


def test_no_broker_reaches_zookeeper() -> None:
    seen = judged({1: CUT_OFF, 2: CUT_OFF, 3: CUT_OFF})
    assert (seen.verdict, seen.is_frozen) == ("degraded", True)
    (found,) = findings(seen)
    assert found.headline.endswith("; do not restart brokers")
    assert found.where == ["zk:2181"]


def test_a_broker_that_does_not_answer_reaches_nothing_either() -> None:
    seen = judged({1: CUT_OFF, 2: SILENT})
    assert seen.is_frozen
    assert [broker.state for broker in seen.view.brokers] == ["alive", "no answer"]
    assert [found.headline for found in findings(seen)][1:] == ["1 registered, but not answering"]


def test_some_do_not_reach_zookeeper_and_are_named() -> None:
    seen = judged({1: REACHES, 2: CUT_OFF, 3: CUT_OFF})
    assert (seen.verdict, seen.is_frozen) == ("degraded", False)
    (found,) = findings(seen)
    assert found.where == ["broker 2", "broker 3"]


def test_nobody_answers_is_not_taken_for_a_fault_of_zookeeper() -> None:
    seen = judged({1: SILENT, 2: SILENT})
    assert not seen.is_frozen
    assert seen.dead == [1, 2]


def test_topics_of_users_are_named_before_internal_ones() -> None:
    row = PartitionState(0, -1, 0, [1], [1], [])
    topics = [
        TopicState("__consumer_offsets", UUID(int=1), True, [row]),
        TopicState("zebra", UUID(int=2), False, [row]),
    ]
    (found,) = findings(judged({1: REACHES}, topics))
    assert found.where == ["zebra-0", "__consumer_offsets-0"]


def test_a_partition_without_a_leader_while_all_brokers_run() -> None:
    """There is none to be started: its replicas were found damaged, or cannot be proved whole."""
    topics = [TopicState("t", UUID(int=2), False, [PartitionState(0, -1, 0, [1, 2], [], [])])]
    at_start = BrokerHealth(True, {QUARANTINED: "t-0"})
    running = BrokerHealth(True, {QUARANTINED: "other-1, t-0 epoch 1 offset 550"})
    for brokers, step, is_unclean in (
        ({1: REACHES, 2: REACHES}, "look for `partition quarantined`", True),
        ({1: at_start, 2: REACHES}, "look for `partition quarantined`", True),
        ({1: at_start, 2: at_start}, "look for `partition quarantined`", False),
        ({1: running, 2: REACHES}, "restart broker 1, one after the other", True),
        ({1: running, 2: running}, "restart broker 1 and broker 2, one after the other", True),
        ({1: REACHES, 2: SILENT}, "start the brokers", False),
        ({1: REACHES, 2: REACHES, 3: SILENT}, "look for `partition quarantined`", True),
    ):
        found = next(each for each in findings(judged(brokers, topics)) if "leader" in each.what)
        assert found.do.startswith(step)
        assert ("--unclean" in found.do) == is_unclean, "where it would elect somebody"


def test_nobody_is_told_to_start_what_runs_or_to_wait_for_what_cannot_come() -> None:
    topics = [TopicState("t", UUID(int=2), False, [PartitionState(0, 1, 0, [1, 2], [1], [])])]
    damaged = BrokerHealth(True, {DAMAGE: "t-0 offsets 5 to 9, u-1 offsets 1 to 2"})
    for brokers, steps in (
        ({1: REACHES, 2: SILENT}, ["start the brokers that are down", ""]),
        ({1: REACHES, 2: REACHES}, ["wait: its replicas catch up, and max lag falls from look to look"] * 2),
        ({1: damaged, 2: REACHES}, ["until those are mended or given up"] * 2),
    ):
        views = [BrokerView(number, "h", 9090 + number, None, True) for number in brokers]
        seen = health.judge(Observation(ClusterView("id", 1, views), topics, {"t": 2}, {}, {}, brokers))
        told = [each.do for each in findings(seen) if each.what.startswith(("below", "under"))]
        assert len(told) == 2
        assert all(do.endswith(step) for do, step in zip(told, steps, strict=True))
        (unreadable,) = [each.do for each in findings(seen) if "damaged" in each.what] or [""]
        assert not unreadable.startswith("start"), "all of them run"


def test_damage_that_is_quarantined_is_not_called_mended() -> None:
    figures = {"scrub.last.pass.ms": "1", "scrub.pass.percent": "100", "log.damage.found": "2"}
    assert findings(judged({1: BrokerHealth(True, {**figures, QUARANTINED: "t-0 epoch 1 offset 5"})})) == []
    silent = {1: BrokerHealth(True, {DAMAGE: "t-0 offsets 5 to 9"}), 2: SILENT}
    found = next(each for each in findings(judged(silent)) if "damaged" in each.what)
    assert found.do.startswith("start the brokers that are down")


def directory(total: int, usable: int, *, failed: bool = False) -> LogDirectory:
    return LogDirectory("/d", failed, total, usable, {})


def headlines(seen: Health) -> list[str]:
    return [f"{found.headline}: {', '.join(found.where)}" for found in findings(seen)]


def test_a_directory_that_is_nearly_full_is_told_and_degrades_nothing() -> None:
    seen = judged({1: REACHES})._replace(directories={1: [directory(100_000_000_000, 5_000_000_000)]})
    assert headlines(seen) == ["1 log directories nearly full: broker 1 /d (5% or 5.0 GB free)"]
    assert seen.verdict == "healthy"
    assert findings(seen._replace(directories={1: [directory(100, 50)]})) == []
    assert findings(seen._replace(directories={1: [directory(-1, -1)]})) == []  # an older broker


def test_a_directory_that_grows_is_told_before_it_is_full() -> None:
    growing = BrokerHealth(True, {growth_of("/d"): "10000000000"})
    seen = judged({1: growing})._replace(directories={1: [directory(100_000_000_000, 50_000_000_000)]})
    assert headlines(seen) == [
        "1 log directories nearly full: broker 1 /d (50% or 50.0 GB free, full in 5.0 days)"
    ]
    shrinking = BrokerHealth(True, {growth_of("/d"): "-10000000000"})
    assert findings(seen._replace(brokers={1: shrinking})) == []


def test_an_offline_directory_and_what_brokers_say_in_words() -> None:
    worried = BrokerHealth(True, {"problem.scrub": "3 segments are overdue"})
    seen = judged({1: worried})._replace(directories={1: [directory(0, 0, failed=True)]})
    assert headlines(seen) == [
        "1 log directories offline: broker 1 /d",
        "1 told by brokers: broker 1: 3 segments are overdue",
    ]


def test_an_internal_topic_with_fewer_replicas_than_configured() -> None:
    views = [BrokerView(number, "h", 9090, None, True) for number in (1, 2, 3)]
    row = PartitionState(0, 1, 0, [1], [1], [])
    topics = [TopicState("__consumer_offsets", UUID(int=1), True, [row])]
    seen = Observation(ClusterView("id", 1, views), topics, {}, {}, {})
    assert health.judge(seen).verdict == "healthy"
    thin = health.judge(seen._replace(factors={"__consumer_offsets": 3}))
    assert thin.verdict == "degraded"
    (found,) = findings(thin)
    assert found.do == "headrace topic reassign __consumer_offsets --brokers 1,2,3 --replication-factor 3"
    two = seen._replace(cluster=ClusterView("id", 1, views[:1]), factors={"__consumer_offsets": 3})
    assert health.judge(two).verdict == "healthy", "with one broker one is all that there can be"


def test_damage_that_was_mended_is_told_once_with_what_to_look_at() -> None:
    found = {"scrub.last.pass.ms": "1", "scrub.pass.percent": "100", "log.damage.found": "2"}
    seen = judged({1: BrokerHealth(True, found), 2: BrokerHealth(True, {**found, "log.damage.found": "0"})})
    assert headlines(seen) == ["1 with damaged files found since the start: broker 1 (2 places)"]
    assert "smartctl" in findings(seen)[0].do
    unmended = judged({1: BrokerHealth(True, {**found, "problem.damage": "t-0 offsets 5 to 9"})})
    assert unmended.verdict == "unreadable"
    (told,) = headlines(unmended)
    assert told.endswith("readers are refused: broker 1: t-0 offsets 5 to 9")
    assert "headrace log verify" in findings(unmended)[0].do


def test_a_broker_that_went_is_named_with_when_and_why() -> None:
    told = BrokerHealth(True, {FENCED: '{"3": [1000, "its session has ended"], "4": [0, "another"]}'})
    later = BrokerHealth(True, {FENCED: '{"3": [61000, "its connection broke and its port refuses"]}'})
    views = [BrokerView(number, "h", 9090 + number, None, True) for number in (1, 2)]
    gone = BrokerView(3, "h", 9093, None, False, registered=False)
    unknown = BrokerView(5, "h", 9095, None, False, registered=False)
    observed = Observation(ClusterView("id", 1, [*views, gone, unknown]), [], {}, {}, {}, {1: told, 2: later})
    (found,) = findings(health.judge(observed))
    assert found.where == [
        "broker 3 (fenced at 1970-01-01T00:01:01Z: its connection broke and its port refuses)",
        "broker 5",
    ]
