"""Each check: quiet while all is well, and what it says where something is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from headrace.client.broker_health import BrokerHealth
from headrace.client.links import ACTIVE, PAUSED, PROMOTED, LinkedPartition, LinkView
from headrace.client.open_transactions import ActiveProducer, OpenTransaction
from headrace.config.health import BUILD, DAMAGE, growth_of
from headrace.config.security_findings import Finding as Protection
from headrace.config.security_findings import Level as Danger
from headrace.config.security_findings import expiry
from headrace.core.ids import TopicPartition
from headrace.doctor.checks.registry import CHECKS, chosen
from headrace.doctor.facts import Audit, Clock, Ends, Facts, GroupFacts, GroupLook, Setting
from headrace.doctor.model import Finding, Level, Unknown, examine
from headrace.doctor.protection import Placed
from headrace.doctor.tails import to_read
from tests.unit.doctor.made_up import (
    ALL,
    BROKER_SETTINGS,
    DAY_MS,
    GIGABYTE,
    NOW_MS,
    ORDERS,
    TOPIC_SETTINGS,
    directory,
    facts,
    judge,
    partition,
    told,
    topic,
    view,
)

HOUR_MS = 3_600_000


def link(lag: int, *, stopped: str | None = None, error: str | None = None, state: str = ACTIVE) -> LinkView:
    partition = LinkedPartition(0, 100, 100 + lag, lag, 0, stopped, None, None)
    return LinkView("orders", state, {}, [partition], [] if error is None else [error])


def look(name: str, seen: Facts) -> list[Finding]:
    (result,) = examine(seen, chosen([name]))
    assert not result.unknown
    return list(result.findings)


def unknown(name: str, seen: Facts) -> str:
    (result,) = examine(seen, chosen([name]))
    return result.unknown


def all_brokers(**figures: str | None) -> dict[int, BrokerHealth]:
    return dict.fromkeys((1, 2, 3), told(**figures))


def one_broker(**figures: str | None) -> dict[int, BrokerHealth]:
    """The second is another than the others."""
    return {1: told(), 2: told(**figures), 3: told()}


def settings(number: int, **changes: Setting) -> dict[int, dict[str, Setting]]:
    named = {name.replace("_", "."): value for name, value in changes.items()}
    return {each: {**BROKER_SETTINGS, **(named if each == number else {})} for each in (1, 2, 3)}


def of_topic(**changes: Setting) -> dict[str, dict[str, Setting]]:
    named = {name.replace("_", "."): value for name, value in changes.items()}
    return {"orders": {**TOPIC_SETTINGS, **named}}


def group(**changes: Any) -> dict[str, GroupFacts]:
    usual = GroupFacts("a b", "Stable", 1, True, {ORDERS: 900}, frozenset({"orders"}))
    return {"a b": usual._replace(**changes)}


def hanging() -> OpenTransaction:
    return OpenTransaction(ActiveProducer(ORDERS, 7, 0, -1, 3, NOW_MS - DAY_MS, 55), None)


def certificate(days: int) -> Placed:
    (found,) = expiry("listener EXTERNAL", days * 86_400 + 60)
    return Placed("broker 1", found)


class Broken(NamedTuple):
    check: str
    seen: Callable[[], Facts]
    level: Level
    words: str
    command: str = ""


DOWN = view(dead=(3,))
TWO_LEFT = [topic("orders", partition(0, [1, 2, 3], [1, 2]), partition(1, [2, 3, 1], [2, 1]))]
UNEVEN = [topic("orders", *(partition(index, [1, 2, 3]) for index in range(9)))]
NEWCOMER = [topic("orders", *(partition(index, [1 + index % 2, 2 - index % 2]) for index in range(20)))]
FULL = {1: [directory(usable_bytes=50 * GIGABYTE)]}

BROKEN = (
    Broken(
        "zookeeper-silent",
        lambda: facts(brokers=all_brokers(zookeeper_answers="false")),
        Level.SERIOUS,
        "no broker reaches ZooKeeper",
    ),
    Broken(
        "zookeeper-cut-off",
        lambda: facts(brokers=one_broker(zookeeper_answers="false")),
        Level.SERIOUS,
        "without ZooKeeper",
    ),
    Broken(
        "partitions-offline",
        lambda: facts([topic("orders", partition(0, [3], leader=-1))], seen_as=DOWN),
        Level.SERIOUS,
        "1 without a leader",
        "headrace topic describe orders",
    ),
    Broken(
        "partitions-under-min-isr",
        lambda: facts([topic("orders", partition(0, [1, 2, 3], [1]))]),
        Level.SERIOUS,
        "below min.insync.replicas",
        "headrace topic describe orders",
    ),
    Broken(
        "records-unreadable",
        lambda: facts(brokers={1: BrokerHealth(True, {DAMAGE: "orders-0 offsets 5 to 9"})}),
        Level.SERIOUS,
        "records are damaged",
    ),
    Broken(
        "brokers-silent",
        lambda: facts(brokers={1: told(), 2: told(), 3: BrokerHealth(False)}),
        Level.SERIOUS,
        "1 registered, but not answering",
    ),
    Broken("brokers-down", lambda: facts(seen_as=DOWN), Level.SERIOUS, "1 not alive"),
    Broken(
        "log-directories-offline",
        lambda: facts(directories={1: [directory(failed=True)]}),
        Level.SERIOUS,
        "1 log directories offline",
    ),
    Broken(
        "partitions-under-replicated",
        lambda: facts(TWO_LEFT),
        Level.WARNING,
        "2 under-replicated",
        "headrace cluster status --wait 600",
    ),
    Broken("partitions-at-min-isr", lambda: facts(TWO_LEFT), Level.WARNING, "one replica away"),
    Broken(
        "files-damaged",
        lambda: facts(brokers=one_broker(log_damage_found="3")),
        Level.WARNING,
        "damaged files",
    ),
    Broken(
        "internal-topics-thin",
        lambda: facts(
            health=judge(
                view(),
                [topic("__consumer_offsets", partition(0, [1]))],
                all_brokers(),
                {},
                factors={"__consumer_offsets": 3},
            )
        ),
        Level.WARNING,
        "fewer replicas than configured",
        "headrace topic reassign __consumer_offsets --brokers 1,2,3 --replication-factor 3",
    ),
    Broken(
        "zookeeper-ensemble",
        lambda: facts(brokers=all_brokers(zookeeper_servers="a:1,b:1,c:1,d:1/x")),
        Level.WARNING,
        "an even number",
    ),
    Broken(
        "zookeeper-ensemble",
        lambda: facts(brokers=all_brokers(zookeeper_servers="a:1")),
        Level.WARNING,
        "one server",
    ),
    Broken("disks-full-soon", lambda: facts(directories=FULL), Level.SERIOUS, "nearly full"),
    Broken(
        "retention-unlimited",
        lambda: facts(directories=FULL, topic_settings=of_topic(retention_ms=Setting("-1", True))),
        Level.WARNING,
        "topics without retention on broker 1 /data, which is 5% free",
        "headrace config set --topic orders retention.ms=604800000",
    ),
    Broken(
        "settings-differ",
        lambda: facts(settings=settings(2, num_io_threads=Setting("2", True, is_dynamic=True))),
        Level.WARNING,
        "brokers differ in num.io.threads",
        "headrace config unset --broker 2 num.io.threads",
    ),
    Broken("versions-mixed", lambda: facts(brokers=one_broker(version="0.2.0")), Level.WARNING, "versions"),
    Broken("versions-mixed", lambda: facts(brokers=one_broker(**{BUILD: "plain"})), Level.WARNING, "builds"),
    Broken(
        "clocks-differ",
        lambda: facts(clocks={1: Clock(0, 5), 2: Clock(-9000, -8995), 3: Clock(0, 5)}),
        Level.WARNING,
        "clocks that differ",
    ),
    Broken(
        "descriptors-few",
        lambda: facts(brokers=one_broker(descriptors_open="17000")),
        Level.WARNING,
        "few descriptors",
    ),
    Broken(
        "descriptors-few",
        lambda: facts(brokers=one_broker(descriptors_open="19999")),
        Level.SERIOUS,
        "few descriptors",
    ),
    Broken(
        "told-by-brokers",
        lambda: facts(brokers=one_broker(problem_loop="the loop is late")),
        Level.WARNING,
        "says of itself",
    ),
    Broken(
        "scrub-overdue",
        lambda: facts(brokers=one_broker(problem_scrub="not since March")),
        Level.WARNING,
        "the scrub is overdue",
    ),
    Broken(
        "scrub-overdue",
        lambda: facts(brokers=one_broker(scrub_pass_percent=None)),
        Level.NOTICE,
        "turned off",
    ),
    Broken(
        "replication-factor-one",
        lambda: facts([*ALL, topic("alone", partition(0, [2]))]),
        Level.WARNING,
        "one copy",
        "headrace topic reassign alone --brokers 1,2,3 --replication-factor 3",
    ),
    Broken(
        "min-isr-without-reserve",
        lambda: facts(topic_settings=of_topic(min_insync_replicas=Setting("3", True))),
        Level.WARNING,
        "need all of their replicas",
        "headrace config set --topic orders min.insync.replicas=2",
    ),
    Broken(
        "unclean-elections",
        lambda: facts(topic_settings=of_topic(unclean_leader_election_enable=Setting("true", True))),
        Level.WARNING,
        "an election may drop",
        "headrace config unset --topic orders unclean.leader.election.enable",
    ),
    Broken(
        "unclean-elections",
        lambda: facts(settings=settings(1, unclean_leader_election_enable=Setting("true", True))),
        Level.WARNING,
        "of every topic without a setting",
        "headrace config set --broker-default unclean.leader.election.enable=false",
    ),
    Broken(
        "auto-create",
        lambda: facts(settings=settings(1, auto_create_topics_enable=Setting("true", False))),
        Level.NOTICE,
        "created by whoever asks",
    ),
    Broken(
        "topics-unread",
        lambda: facts(groups={}),
        Level.NOTICE,
        "no group reads",
    ),
    Broken(
        "leaders-uneven",
        lambda: facts(UNEVEN),
        Level.WARNING,
        "leaders are spread unevenly",
        "headrace cluster rebalance --plan",
    ),
    Broken(
        "replicas-uneven",
        lambda: facts(NEWCOMER),
        Level.WARNING,
        "replicas are spread unevenly",
        "headrace cluster rebalance --throttle 50MB",
    ),
    Broken(
        "replicas-many",
        lambda: facts([topic("wide", *(partition(index, [1]) for index in range(10_001)))]),
        Level.WARNING,
        "more than 10,000 replicas",
    ),
    Broken(
        "groups-losing-records",
        lambda: facts(groups=group(committed={ORDERS: 99})),
        Level.SERIOUS,
        "group a b is about to miss records",
        f"headrace config set --topic orders retention.ms={14 * DAY_MS}",
    ),
    Broken(
        "groups-losing-records",
        lambda: facts(groups=group(committed={ORDERS: 2}), ends={ORDERS: Ends(50, 1000)}),
        Level.SERIOUS,
        "group a b has missed 48 records",
        "headrace group describe 'a b'",
    ),
    Broken(
        "jobs-standing-still",
        lambda: facts(groups=group(committed={ORDERS: 399}, subscribes=False, members=0)),
        Level.WARNING,
        "job a b has not committed records that are older than an hour",
        "headrace group lag 'a b'",
    ),
    Broken(
        "groups-abandoned",
        lambda: facts(groups=group(state="Empty", members=0)),
        Level.NOTICE,
        "group a b has no members, and 100 records to read",
    ),
    Broken(
        "groups-abandoned",
        lambda: facts(groups=group(members=0, committed={TopicPartition("gone", 0): 3})),
        Level.NOTICE,
        "offsets of topics that are gone",
    ),
    Broken(
        "groups-restless",
        lambda: facts(looks=[{"g": GroupLook("Stable", 4)}, {"g": GroupLook("Stable", 6)}]),
        Level.WARNING,
        "group g rebalances",
        "headrace group describe g",
    ),
    Broken(
        "groups-restless",
        lambda: facts(looks=[{"g": GroupLook("PreparingRebalance", None)}] * 2),
        Level.WARNING,
        "PreparingRebalance 2 s later",
    ),
    Broken(
        "transactions-hanging",
        lambda: facts(hanging=[hanging()]),
        Level.SERIOUS,
        "a transaction hangs",
        "headrace txn abort --topic orders --partition 0 --start-offset 55",
    ),
    Broken(
        "audit-stale",
        lambda: facts(audit=Audit(NOW_MS, NOW_MS - 2 * HOUR_MS)),
        Level.WARNING,
        "the last 120 min older",
        "headrace audit status",
    ),
    Broken(
        "audit-stale", lambda: facts(audit=Audit(NOW_MS - 2 * DAY_MS, None)), Level.NOTICE, "more than a day"
    ),
    Broken(
        "certificates-ending", lambda: facts(protection=[certificate(20)]), Level.WARNING, "ends in 20 days"
    ),
    Broken("certificates-ending", lambda: facts(protection=[certificate(-1)]), Level.SERIOUS, "has expired"),
    Broken(
        "tier-store-failing",
        lambda: facts(brokers=one_broker(tier_failure="403: AccessDenied")),
        Level.SERIOUS,
        "the object store fails: 403: AccessDenied",
        "headrace tier status",
    ),
    Broken(
        "tier-manifest-unreadable",
        lambda: facts(brokers=one_broker(tier_stopped='{"orders-0": "its checksum is wrong"}')),
        Level.SERIOUS,
        "1 partitions of broker 2 neither extend nor shorten their history: its checksum is wrong",
    ),
    Broken(
        "tier-segments-late",
        lambda: facts(brokers=all_brokers(tier_late_seconds="1860")),
        Level.WARNING,
        "since 31 minutes",
    ),
    Broken(
        "protection",
        lambda: facts(
            protection=[
                Placed(
                    "rules",
                    Protection(
                        Danger.SERIOUS, "User:*", "everybody may", "then headrace acl remove --topic t"
                    ),
                )
            ]
        ),
        Level.SERIOUS,
        "User:*: everybody may",
        "headrace acl remove --topic t",
    ),
    Broken(
        "links-stopped",
        lambda: facts(links=[link(0, stopped="the topic was made anew")]),
        Level.SERIOUS,
        "the link of orders has stopped: the topic was made anew",
        "headrace link describe orders",
    ),
    Broken(
        "links-silent",
        lambda: facts(links=[link(-1, error="nothing listens at there:9092")]),
        Level.WARNING,
        "how far the link of orders is behind: nothing listens at there:9092",
        "headrace link describe orders",
    ),
    Broken(
        "protection",
        lambda: facts(protection=[Placed("broker 1", Protection(Danger.ADVICE, "x", "y", "z"))]),
        Level.NOTICE,
        "could be better",
        "headrace doctor security",
    ),
)


@pytest.mark.parametrize("broken", BROKEN, ids=[f"{each.check}: {each.words}" for each in BROKEN])
def test_what_is_wrong_is_found_and_has_its_mend(broken: Broken) -> None:
    found = look(broken.check, broken.seen())
    (told_of,) = [each for each in found if broken.words in each.what]
    assert told_of.level == broken.level
    if broken.command:
        assert broken.command in told_of.commands
    assert told_of.commands or told_of.advice


@pytest.mark.parametrize(
    "quiet", [link(5), link(-1, state=PAUSED), link(-1, state=PROMOTED), link(0, stopped="x", state=PROMOTED)]
)
def test_a_link_that_copies_or_is_not_to_is_quiet(quiet: LinkView) -> None:
    seen = facts(links=[quiet])
    assert [look(name, seen) for name in ("links-stopped", "links-silent")] == [[], []]


def test_each_check_is_seen_to_find_something() -> None:
    assert {each.check for each in BROKEN} == {check.name for check in CHECKS}


def test_nothing_is_found_where_all_is_well() -> None:
    for result in examine(facts(), CHECKS):
        assert (result.check.name, result.findings, result.unknown) == (result.check.name, [], "")


def test_a_store_with_which_all_is_well_is_quiet() -> None:
    well = all_brokers(tier_late_seconds="899", tier_failure="", tier_stopped="{}")
    for name in ("tier-store-failing", "tier-manifest-unreadable", "tier-segments-late"):
        assert look(name, facts(brokers=well)) == []


def test_names_are_their_own() -> None:
    names = [check.name for check in CHECKS]
    groups = {check.group for check in CHECKS}
    assert len(set(names)) == len(names)
    assert not groups & set(names)
    assert {check.group for check in chosen(["disks"])} == {"disks"}
    assert len(CHECKS) >= 25


def test_one_broker_alone_is_said_once_and_softly() -> None:
    alone = [topic("a", partition(0, [1])), topic("b", partition(0, [1]))]
    local = facts(
        alone,
        {1: told(zookeeper_answers=None, zookeeper_servers=None)},
        view({1: "127.0.0.1"}),
        {1: [directory()]},
        settings={1: {**BROKER_SETTINGS, "auto.create.topics.enable": Setting("true", False)}},
        protection=[Placed("broker 1", Protection(Danger.ADVICE, "x", "y", "z"))],
        ends={},
    )
    results = examine(local, CHECKS)
    found = [each for result in results for each in result.findings]
    assert [(each.level, each.where) for each in found] == [(Level.NOTICE, ())]
    assert not any(result.unknown for result in results)


@pytest.mark.parametrize(
    ("fact", "checks"),
    [
        ("health", ("partitions-offline", "leaders-uneven", "disks-full-soon")),
        ("settings", ("settings-differ", "auto-create", "unclean-elections")),
        ("topic_settings", ("min-isr-without-reserve", "groups-losing-records", "retention-unlimited")),
        ("directories", ("disks-full-soon", "retention-unlimited")),
        ("groups", ("groups-abandoned", "groups-losing-records", "jobs-standing-still", "topics-unread")),
        ("looks", ("groups-restless",)),
        ("ends", ("groups-losing-records", "topics-unread", "groups-abandoned")),
        ("nearly_lost", ("groups-losing-records",)),
        ("an_hour_ago", ("jobs-standing-still",)),
        ("last_records", ("groups-losing-records", "jobs-standing-still", "groups-abandoned")),
        ("hanging", ("transactions-hanging",)),
        ("protection", ("certificates-ending", "protection")),
        ("links", ("links-stopped", "links-silent")),
        ("audit", ("audit-stale",)),
    ],
)
def test_what_is_not_known_does_not_pass(fact: str, checks: tuple[str, ...]) -> None:
    denied: dict[str, Any] = {fact: Unknown("DescribeThat denied")}
    seen = facts(**denied)
    for name in checks:
        assert unknown(name, seen) == "DescribeThat denied", name


def test_a_broker_that_tells_nothing_of_itself_leaves_checks_without_an_answer() -> None:
    silent = facts(brokers={1: told(), 2: BrokerHealth(True), 3: told()}, clocks={1: Clock(0, 1)})
    for name in ("zookeeper-silent", "files-damaged", "versions-mixed", "descriptors-few", "told-by-brokers"):
        assert "broker 2 did not" in unknown(name, silent), name
    assert unknown("clocks-differ", silent) == "brokers 2, 3 did not tell what time it is"
    assert "broker 2 did not name" in unknown("zookeeper-ensemble", silent)


def test_what_was_found_before_the_unknown_is_told_as_well() -> None:
    half = facts(brokers={1: told(version="0.1.0"), 2: told(problem_loop="late"), 3: BrokerHealth(True)})
    (result,) = examine(half, chosen(["told-by-brokers"]))
    assert len(result.findings) == 1
    assert "broker 3" in result.unknown


def test_the_growth_of_a_young_broker_is_known_only_where_it_cannot_matter() -> None:
    nameless = {growth_of("/data").replace(".", "_"): None}
    young = dict.fromkeys((1, 2, 3), told(uptime_seconds="60", **nameless))
    assert look("disks-full-soon", facts(brokers=young)) == []  # 3 MB in a minute fill no 500 GB in a week
    small = {1: [directory(usable_bytes=GIGABYTE, total_bytes=2 * GIGABYTE)]}
    assert "an hour after its start" in unknown("disks-full-soon", facts(brokers=young, directories=small))


def test_a_clock_is_wrong_only_where_the_question_leaves_no_doubt() -> None:
    slow = facts(clocks=dict.fromkeys((1, 2, 3), Clock(-60_000, 5)))
    assert look("clocks-differ", slow) == []
    ours = facts(clocks=dict.fromkeys((1, 2, 3), Clock(9000, 9100)))
    (found,) = look("clocks-differ", ours)
    assert "this machine's clock first" in found.advice


def test_leaders_that_come_back_by_themselves_are_a_notice() -> None:
    away = [topic("orders", *(partition(index, [1 + index % 3, 3, 2, 1], leader=1) for index in range(12)))]
    (found,) = look("leaders-uneven", facts(away))
    assert (found.level, found.commands) == (Level.NOTICE, ["headrace topic elect-leaders"])


def test_ordinary_differences_between_brokers_are_none() -> None:
    own = settings(
        2,
        broker_id=Setting("2", True),
        ssl_keystore_location=Setting("/b", True),
        listeners=Setting("SSL://b:9092", True),
        ssl_key_password=Setting(None, True, sensitive=True),
    )
    assert look("settings-differ", facts(settings=own)) == []


def test_marks_of_transactions_are_not_records_that_nobody_has_read() -> None:
    """A client that has read everything may stand before the mark that ends the last transaction."""
    at_mark: dict[str, Any] = {"nearly_lost": {ORDERS: 1000}}
    at_mark["groups"] = group(committed={ORDERS: 999}, members=0)
    for name in ("groups-losing-records", "groups-abandoned"):
        assert look(name, facts(**at_mark, last_records={ORDERS: 999}))
        assert look(name, facts(**at_mark, last_records={ORDERS: -1})) == []
        assert look(name, facts(**at_mark, last_records={ORDERS: 998})) == []
    gone = {ORDERS: Ends(1000, 1000)}
    assert look("groups-losing-records", facts(**at_mark, ends=gone)) == []


def test_far_from_the_end_no_record_has_to_be_read_to_know() -> None:
    far = facts(groups=group(committed={ORDERS: 50}), last_records=Unknown("Fetch denied"))
    (result,) = examine(far, chosen(["groups-losing-records"]))
    assert len(result.findings) == 1
    assert result.unknown == "Fetch denied"


def test_only_tails_that_decide_are_read() -> None:
    assert to_read(facts()) == {}  # two members, and nothing old
    behind = facts(groups=group(committed={ORDERS: 950}), nearly_lost={ORDERS: 960})
    assert to_read(behind) == {ORDERS: 950}
    assert to_read(facts(groups=group(committed={ORDERS: 950}, members=0))) == {ORDERS: 950}
    assert to_read(facts(groups=group(committed={ORDERS: 10}, members=0))) == {}
    assert to_read(facts(groups=Unknown("denied"))) == {}
