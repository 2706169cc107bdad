"""Forks where an authorizer says who may do what: a user who may make topics reads nobody else's history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AclBinding, AclOperation, NewTopic, ResourceType

from headrace.cli.main import cli
from tests.broker_process import Place
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties
from tests.directories.object_store import running_object_store
from tests.guarded_broker import PASSWORD, SECONDS, Guarded
from tests.integration.tiered_broker import TIERED, value_of, wait_tiered

pytestmark = pytest.mark.timeout(240)

ORIGIN = "orders"
COUNT = 3000


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """With a topic whose history is in a bucket."""
    with running_object_store() as store:
        made = Guarded(tmp_path_factory.mktemp("guarded"), **broker_properties(store))
        made.broker.place = Place(environment=ENVIRONMENT)
        with made.broker:
            made.admin.create_topics([NewTopic(ORIGIN, 1, 1, config=TIERED)])[ORIGIN].result(SECONDS)
            made.add_user("alice")
            rules = [
                made.allow(ResourceType.TOPIC, ORIGIN, each)
                for each in (AclOperation.READ, AclOperation.WRITE)
            ]
            _fill(made)
            for rule in rules:
                made.forbid_again(rule)
            wait_tiered(made.broker, ORIGIN, 1000)
            yield made


def _fill(guarded: Guarded) -> None:
    producer = Producer({**guarded.client(), "linger.ms": 5, "batch.size": 5000})
    for number in range(COUNT):
        producer.produce(ORIGIN, value_of(number))
        producer.poll(0)
    assert producer.flush(SECONDS) == 0


@pytest.fixture
def command_config(guarded: Guarded, tmp_path: Path) -> Path:
    """Of alice."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = f'{module} required username="alice" password="{PASSWORD}";'
    file = tmp_path / "alice.properties"
    file.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={login}\n"
        f"ssl.truststore.location={guarded.authority.trust_store}\nssl.truststore.type=PEM\n"
    )
    file.chmod(0o600)
    return file


@pytest.fixture
def rights(guarded: Guarded) -> Iterator[list[AclBinding]]:
    """What alice was given; it is taken back in the end."""
    given = [guarded.allow(ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE)]
    yield given
    for rule in given:
        guarded.forbid_again(rule)


def fork(guarded: Guarded, command_config: Path) -> tuple[str, Result]:
    name = f"fork-{uuid4().hex[:8]}"
    command = ["topic", "fork", ORIGIN, name, "--bootstrap", f"127.0.0.1:{guarded.port}"]
    environment = {"HEADRACE_COMMAND_CONFIG": str(command_config)}
    return name, CliRunner(env=environment).invoke(cli, command)


def exists(guarded: Guarded, name: str) -> bool:
    return name in guarded.admin.list_topics(timeout=SECONDS).topics


@pytest.mark.parametrize(
    ("operations", "said"),
    [
        ((), f"topic {ORIGIN}: this user has no right to do that"),
        (
            (AclOperation.DESCRIBE,),
            f"a fork takes over the settings of {ORIGIN}, and this user may not see them",
        ),
        (
            (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS),
            "the principal may not read the topic that is to be forked: READ on it",
        ),
        (
            (AclOperation.WRITE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER),
            "the principal may not read the topic that is to be forked: READ on it",
        ),
    ],
)
def test_who_may_create_but_not_read_makes_no_fork(
    guarded: Guarded,
    command_config: Path,
    rights: list[AclBinding],
    operations: tuple[AclOperation, ...],
    said: str,
) -> None:
    rights += [guarded.allow(ResourceType.TOPIC, ORIGIN, each) for each in operations]
    name, result = fork(guarded, command_config)
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr
    assert not exists(guarded, name)


def test_who_may_read_and_create_makes_a_fork_and_reads_it_by_its_own_rules(
    guarded: Guarded, command_config: Path, rights: list[AclBinding]
) -> None:
    for each in (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS):
        rights.append(guarded.allow(ResourceType.TOPIC, ORIGIN, each))
    name, result = fork(guarded, command_config)
    assert result.exit_code == 0, result.output
    rights.append(guarded.allow(ResourceType.TOPIC, name, AclOperation.READ))
    rights.append(guarded.allow(ResourceType.GROUP, "readers", AclOperation.READ))
    guarded.forbid_again(rights.pop(1))  # READ on the origin: the fork is a topic of its own
    consumer = Consumer(
        {**guarded.client(), "group.id": "readers", "auto.offset.reset": "error", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(name, 0, 0)])
    try:
        messages = consumer.consume(1000, SECONDS)
    finally:
        consumer.close()
    assert [each.value() for each in messages] == [value_of(number) for number in range(1000)]
