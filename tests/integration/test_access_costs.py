"""A broker that remembers as much as it may tells of it without holding its loop."""

from __future__ import annotations

from headrace.broker.authorization.access_memory import MOST_KEPT, MOST_OF_ONE, AccessMemory
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.describe_configs_response import DescribeConfigsResponse
from headrace.security.acl import Operation, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.acl_usage import Access
from headrace.security.rights import Authorizer
from headrace.testing.cluster import Cluster
from tests.loop_turns import turns_of
from tests.wire import Wire

LONGEST_MS = 50.0


def full_memory() -> AccessMemory:
    memory = AccessMemory(1)
    for table in (memory.used, memory.denied):
        for number in range(MOST_KEPT):
            principal = f"User:{number // MOST_OF_ONE}-{'x' * 240}"
            name = f"{number:06}{'y' * 240}"
            table.note(Access(principal, Operation.READ, ResourceType.TOPIC, name), "10.0.0.1", number)
        assert (len(table), table.overflow) == (MOST_KEPT, 0)
    return memory


def test_a_full_memory_is_told_in_slices() -> None:
    with Cluster() as cluster:
        context = cluster.broker.context
        security, memory = context.security, full_memory()
        authorizer = Authorizer(AclIndex(), super_users=["User:ANONYMOUS"])
        cluster.call(lambda: setattr(security, "authorizer", authorizer))
        cluster.call(lambda: setattr(security, "memory", memory))
        resource = DescribeConfigsResource(
            resource_type=4,
            resource_name=str(context.runtime.broker_id),
            configuration_keys=["headrace.access"],
        )
        with Wire(int(cluster.bootstrap.rpartition(":")[2]), timeout=60) as wire, turns_of(cluster) as turns:
            request = DescribeConfigsRequest(resources=[resource])
            answer: DescribeConfigsResponse = wire.ask(request, 4, DescribeConfigsResponse)
            assert turns.longest_ms < LONGEST_MS
        assert len(answer.results[0].configs) == 3 + 2 * MOST_KEPT
