"""Writes docs/configuration.md from the declarations: `python docs/tooling/configuration_reference.py`.

A test compares the file with what this module would write.
"""

from __future__ import annotations

from pathlib import Path

from headrace.config.broker import BROKER_PROPERTIES
from headrace.config.broker_properties.authentication import AuthenticationProperties
from headrace.config.broker_properties.authorization import AuthorizationProperties
from headrace.config.broker_properties.balancing import BalancingProperties
from headrace.config.broker_properties.cleaner import CleanerProperties
from headrace.config.broker_properties.cluster import ReplicationProperties, TopicCreationProperties
from headrace.config.broker_properties.consumer_groups import ConsumerGroupProperties
from headrace.config.broker_properties.delegation_tokens import DelegationTokenProperties
from headrace.config.broker_properties.groups import GroupProperties
from headrace.config.broker_properties.identity import IdentityProperties
from headrace.config.broker_properties.internal_topics import InternalTopicProperties
from headrace.config.broker_properties.kerberos import KerberosProperties
from headrace.config.broker_properties.links import LinkProperties
from headrace.config.broker_properties.memory import MemoryProperties
from headrace.config.broker_properties.metrics import MetricsProperties
from headrace.config.broker_properties.network import NetworkProperties
from headrace.config.broker_properties.oauth import OAuthProperties
from headrace.config.broker_properties.offsets import OffsetProperties
from headrace.config.broker_properties.storage import StorageProperties
from headrace.config.broker_properties.tiered_storage import TieredStorageProperties
from headrace.config.broker_properties.tls import TlsListenerProperties
from headrace.config.broker_properties.transactions import TransactionProperties
from headrace.config.broker_properties.zookeeper import ZooKeeperProperties
from headrace.config.group_properties import GROUP_PROPERTIES
from headrace.config.property import Property, Status
from headrace.config.topic_properties import TOPIC_PROPERTIES
from headrace.config.values import DOUBLE_MAX, INT_MAX, LONG_MAX

HERE = Path(__file__).parent
PAGE = HERE.parent / "configuration.md"
KAFKA_NAMES = HERE / "kafka-4.3.1-broker-properties.txt"

SECTIONS: tuple[tuple[str, type], ...] = (
    ("Identity, cluster, shutdown", IdentityProperties),
    ("Listeners, sockets, requests", NetworkProperties),
    ("Memory for peers", MemoryProperties),
    ("The log", StorageProperties),
    ("Tiered storage", TieredStorageProperties),
    ("The cleaner", CleanerProperties),
    ("Creating topics", TopicCreationProperties),
    ("Replication", ReplicationProperties),
    ("Self-balancing", BalancingProperties),
    ("Groups", GroupProperties),
    ("Groups of the server-side protocol", ConsumerGroupProperties),
    ("Offsets of groups", OffsetProperties),
    ("Transactions", TransactionProperties),
    ("Links", LinkProperties),
    ("Internal topics", InternalTopicProperties),
    ("TLS", TlsListenerProperties),
    ("Authentication", AuthenticationProperties),
    ("OAUTHBEARER", OAuthProperties),
    ("GSSAPI", KerberosProperties),
    ("Authorization", AuthorizationProperties),
    ("Delegation tokens", DelegationTokenProperties),
    ("ZooKeeper by TLS, with ACLs", ZooKeeperProperties),
    ("Metrics", MetricsProperties),
)

INTRODUCTION = """\
# Configuration

This page is written from the declarations in `headrace/config` by
`python docs/tooling/configuration_reference.py`; do not edit it by hand.

A broker reads a file in the syntax of Java's properties, under Kafka's own names. Most files that were
written for Kafka can be used as they are: an unknown name is reported, with the nearest known one, and
ignored. A wrong value stops the start and says which property it is. So does a property of protection that
is unknown, names a class to load, or asks for what is not there: a broker that passed over it would be less
protected than its file says. Those that begin with `ssl.` or `sasl.` may stand under
`listener.name.<name>.`, with the listener's name in small letters, and count for that listener alone;
`sasl.jaas.config` stands under `listener.name.<name>.<mechanism>.`

**Where a topic's value comes from**, strongest first: the topic itself, this broker at run time, all
brokers at run time, the broker's file, the default. Times in several units (`log.retention.ms`,
`.minutes`, `.hours`) count from the finest to the coarsest that is set. Other names that are understood:
{aliases}.

**Stricter than Kafka, on purpose:**

- An empty host in `listeners` is the loopback address, not every address. To be reachable from outside,
  write the address out (`PLAINTEXT://0.0.0.0:9092`) and say in `advertised.listeners` what clients should
  use. The broker repeats at its start what is reachable from outside.
- The default data directory is not Kafka's, so that the two never share one, and it is warned of, because
  it lies in `/tmp`.
- Where Kafka sets no bound and nonsense would follow, such as a replication factor of 0, there is one.
- `zookeeper.session.timeout.ms` is 6 s; in Kafka 3.9 it was 18 s.
- A listener that asks clients for certificates needs a trust store of its own; Java's is not taken instead.
- `PLAIN` and `OAUTHBEARER` need TLS, unless they are set under the prefix of a SASL_PLAINTEXT listener.
- `OAUTHBEARER` does not start without an expected issuer, an expected audience and a place of keys.
- `GSSAPI` does not start without a key of its principal in the keytab, with a rule that fails each login,
  or where the principal is not one of `sasl.kerberos.service.name`.
- `super.users` without `authorizer.class.name` stops the start.

**Where DescribeConfigs and AlterConfigs differ from Apache Kafka 4.3.1**, found by asking both the same:

- `listeners`, `listener.security.protocol.map`, `ssl.*` and `sasl.*` cannot change while the broker runs. A
  certificate that is replaced in its file is taken within ten seconds, or at once after SIGHUP.
- `log.retention.ms=0` is refused for all brokers, not only for one.
- `log.cleaner.threads` may rise by any amount; Kafka refuses more than double at once.
- `min.insync.replicas` of all brokers is written down by a cluster's first controller, from its file; Kafka
  does that when its storage is formatted. As with Kafka it can be changed afterwards and not removed, and
  cannot differ by broker.
- Where `log.retention.ms` is set at run time, Kafka shows `log.retention.minutes` of the file as not set.
- `advertised.listeners` is shown as it is in the file, so as not set where the listeners are used.
- An error has our own words beside Kafka's code.

**Status.** *active* works. *later* is accepted, stored and described, but Headrace does not use it yet;
setting it in a broker's file is reported at the start.

**Changes at run time.** *cluster-wide* may be set for all brokers or for one, *per-broker* for one only,
*read-only* needs the file and a restart. Every property of topics and groups may change at any time.
"""

OF_GROUPS = """
## Group properties

They count for one group of the server-side protocol, which need not have members yet, and are set by
`headrace config set --group` or `kafka-configs --entity-type groups`. A member hears of a change with its
next heartbeat. A broker whose bounds are narrower than a value keeps to its bounds. What is set for a group
stays when the group is deleted.

"""


def render() -> str:
    aliases = ", ".join(
        f"`{alias}` for `{declared.name}`"
        for declared in BROKER_PROPERTIES.values()
        for alias in declared.aliases
    )
    parts = [INTRODUCTION.format(aliases=aliases), "\n## Topic properties\n\n", _topic_table()]
    parts += [OF_GROUPS, _group_table()]
    for title, group in SECTIONS:
        parts += [f"\n## Broker properties: {title}\n\n", _broker_table(group)]
    parts.append(_absent())
    return "".join(parts)


def _topic_table() -> str:
    lines = [
        "| Name | Default | Accepted | Broker's default from | What it does | Status |",
        "|---|---|---|---|---|---|",
    ]
    for declared in TOPIC_PROPERTIES.values():
        if declared.internal:
            continue
        behind = ", ".join(f"`{name}`" for name, _ in declared.synonyms)
        lines.append(
            f"| `{declared.name}` | {_default(declared)} | {_accepted(declared)} | {behind} "
            f"| {declared.prose} | {declared.status.value} |"
        )
    return "\n".join(lines) + "\n"


def _group_table() -> str:
    lines = ["| Name | Default | Bounds | What it does |", "|---|---|---|---|"]
    for declared in GROUP_PROPERTIES.values():
        ((behind, _),) = declared.synonyms
        name = behind.removeprefix("group.consumer.")
        bounds = f"`group.consumer.min.{name}` to `group.consumer.max.{name}`"
        lines.append(f"| `{declared.name}` | `{behind}` | {bounds} | {declared.prose} |")
    return "\n".join(lines) + "\n"


def _broker_table(group: type) -> str:
    lines = [
        "| Name | Default | Accepted | Scope | At run time | What it does | Status |",
        "|---|---|---|---|---|---|---|",
    ]
    for declared in vars(group).values():
        if not isinstance(declared, Property):
            continue
        scope = "broker" if declared.topic_name is None else f"broker; topic as `{declared.topic_name}`"
        lines.append(
            f"| `{declared.name}` | {_default(declared)} | {_accepted(declared)} | {scope} "
            f"| {declared.update.value} | {declared.prose} | {declared.status.value} |"
        )
    return "\n".join(lines) + "\n"


def _default(declared: Property[object]) -> str:
    if declared.default is None:
        return "not set"
    if declared.default in (INT_MAX, LONG_MAX, DOUBLE_MAX):
        return "no limit"
    return f"`{declared.default_text()}`" if declared.default_text() else "empty"


def _accepted(declared: Property[object]) -> str:
    kind = declared.type.name.lower()
    if declared.allowed:
        return f"{kind}: {', '.join(declared.allowed)}"
    least, most = declared.at_least, declared.at_most
    if least is not None and most is not None:
        return f"{kind}, {least} to {most}"
    return kind if least is None else f"{kind}, from {least}"


def _absent() -> str:
    """What Kafka describes for a broker and we do not know, by the first word of the name."""
    groups: dict[str, list[str]] = {}
    for name in KAFKA_NAMES.read_text().split():
        if name not in BROKER_PROPERTIES:
            groups.setdefault(name.partition(".")[0], []).append(name)
    lines = [f"- {', '.join(f'`{name}`' for name in names)}" for names in groups.values()]
    later = sum(declared.status is Status.LATER for declared in BROKER_PROPERTIES.values())
    return (
        "\n## What Kafka has and this broker does not know\n\n"
        f"Of the broker properties above, {later} are for later. Apache Kafka 4.3.1 lists these as well when "
        "a broker is described; here they are unknown names, reported and ignored in a file, except that "
        "those of protection stop the start:\n\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(render())
