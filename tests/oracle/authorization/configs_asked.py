"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: of topics, groups, brokers, loggers, metrics."""

from __future__ import annotations

from headrace.protocol.messages import alter_configs_request as whole
from headrace.protocol.messages import incremental_alter_configs_request as steps
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.oracle.authorization.person import Person
from tests.oracle.authorization.world import World
from tests.oracle.conversation import versions

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
RESOURCES = (
    (TOPIC, "lit", "retention.ms", "86400000"),
    (TOPIC, "pre-b", "retention.ms", "86400000"),
    (TOPIC, "pre-shut", "retention.ms", "86400000"),
    (TOPIC, "shut", "retention.ms", "86400000"),
    (TOPIC, "absent", "retention.ms", "86400000"),
    (TOPIC, "pre-absent", "retention.ms", "86400000"),
    (TOPIC, "__consumer_offsets", "retention.ms", "86400000"),
    (GROUP, "g-lit", "consumer.session.timeout.ms", "50000"),
    (GROUP, "g-pre-a", "consumer.session.timeout.ms", "50000"),
    (GROUP, "g-shut", "consumer.session.timeout.ms", "50000"),
    (GROUP, "g-pre-absent", "consumer.session.timeout.ms", "50000"),
    (BROKER, "1", "log.retention.ms", "86400000"),
    (BROKER, "", "log.retention.ms", "86400000"),
)
FIRST_WITH_GROUPS = 1


def ask(person: Person, world: World) -> None:
    del world
    _describe(person)
    _replace(person)
    _alter(person)


def _describe(person: Person) -> None:
    for version in versions(DescribeConfigsRequest):
        resources = [
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
            for kind, name, key, _ in RESOURCES
        ]
        person.ask("describe configs", DescribeConfigsRequest(resources=resources), version)
    for kind, name in ((TOPIC, "not a name"), (BROKER, "99"), (GROUP, ""), (77, "x")):
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=["retention.ms"]
        )
        person.ask(f"describe configs of {kind} {name!r}", DescribeConfigsRequest(resources=[resource]), 4)


def _replace(person: Person) -> None:
    for version in versions(whole.AlterConfigsRequest):
        resources = [
            whole.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[whole.AlterableConfig(name=key, value=value)],
            )
            for kind, name, key, value in RESOURCES
        ]
        person.ask(
            "validate other configs",
            whole.AlterConfigsRequest(resources=resources, validate_only=True),
            version,
        )


def _alter(person: Person) -> None:
    for version in versions(steps.IncrementalAlterConfigsRequest):
        resources = [
            steps.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[steps.AlterableConfig(name=key, config_operation=0, value=value)],
            )
            for kind, name, key, value in RESOURCES
        ]
        asked = steps.IncrementalAlterConfigsRequest(resources=resources, validate_only=True)
        person.ask("validate an alteration", asked, version)
        twice = steps.IncrementalAlterConfigsRequest(resources=resources[:4] * 2, validate_only=True)
        person.ask("validate an alteration, twice", twice, version)
    # One that takes effect: the same value whoever sets it.
    resource = steps.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="pre-b",
        configs=[steps.AlterableConfig(name="retention.ms", config_operation=0, value="86400000")],
    )
    person.ask("alter", steps.IncrementalAlterConfigsRequest(resources=[resource]), 1)
    for kind, name in ((TOPIC, "not a name"), (BROKER, "99"), (77, "x")):
        strange = steps.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[steps.AlterableConfig(name="retention.ms", config_operation=0, value="1000")],
        )
        request = steps.IncrementalAlterConfigsRequest(resources=[strange], validate_only=True)
        person.ask(f"validate an alteration of {kind} {name!r}", request, 1)
