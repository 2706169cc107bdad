"""Links are the cluster's: a right on a topic does not reach its link."""

from __future__ import annotations

from headrace.controller.image import ResourceType
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.security.acl import AclRule, Operation
from tests.unit.broker.authorization.realm import Realm, on_cluster, on_topic, rights_by

LINK = {
    "source.bootstrap.servers": "there:9092",
    "source.topic": "t",
    "source.topic.id": "11111111-2222-3333-4444-555555555555",
    "source.cluster.id": "other",
    "state": "ACTIVE",
}


def make(realm: Realm, rules: list[AclRule]) -> int:
    configs = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in LINK.items()]
    resource = AlterConfigsResource(resource_type=ResourceType.LINK, resource_name="linked", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = realm.ask(request, 1, rights_by(rules)).responses
    return int(answer.error_code)


def look(realm: Realm, rules: list[AclRule]) -> int:
    resource = DescribeConfigsResource(
        resource_type=ResourceType.LINK, resource_name="linked", configuration_keys=None
    )
    (answer,) = realm.ask(DescribeConfigsRequest(resources=[resource]), 4, rights_by(rules)).results
    return int(answer.error_code)


def test_who_may_alter_a_topic_may_not_alter_its_link(realm: Realm) -> None:
    of_topic = [
        *on_topic(Operation.ALTER_CONFIGS, "linked"),
        *on_topic(Operation.DESCRIBE_CONFIGS, "linked"),
    ]
    assert make(realm, of_topic) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert look(realm, of_topic) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert "linked" not in realm.context.metadata.image.links


def test_who_may_alter_the_cluster_may(realm: Realm) -> None:
    assert make(realm, on_cluster(Operation.ALTER_CONFIGS)) == ErrorCode.NONE
    assert realm.context.metadata.image.links["linked"].bootstrap == "there:9092"
    assert look(realm, on_cluster(Operation.DESCRIBE_CONFIGS)) == ErrorCode.NONE
