"""DescribeCluster: brokers, controller and cluster id.

Versions 0-2. 1: the endpoint's type (only brokers here). 2: fenced brokers on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.allowed_operations import NOT_ASKED, on_cluster
from headrace.broker.requests.api import Api, Call
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_cluster_request import DescribeClusterRequest
from headrace.protocol.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

BROKERS: Final = 1
CONTROLLERS: Final = 2


def handle(context: RequestContext, request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    if call.version >= 1 and request.endpoint_type != BROKERS:
        if request.endpoint_type == CONTROLLERS:
            code, text = ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a broker endpoint, not a controller's"
        else:
            code, text = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "the endpoint type must be brokers"
        return DescribeClusterResponse(error_code=code, error_message=text)
    return DescribeClusterResponse(
        cluster_id=context.metadata.cluster_id,
        controller_id=context.node.controller_id,
        brokers=_brokers(context, call.connection.listener, fenced=request.include_fenced_brokers),
        cluster_authorized_operations=(
            on_cluster(call.rights) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _brokers(context: RequestContext, listener: str, *, fenced: bool) -> list[DescribeClusterBroker]:
    found = [
        DescribeClusterBroker(broker_id=node.broker_id, host=node.host, port=node.port, rack=node.rack)
        for node in context.metadata.nodes(listener)
    ]
    if fenced:
        found += [
            DescribeClusterBroker(
                broker_id=registration.broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=registration.rack,
                is_fenced=True,
            )
            for registration in context.metadata.image.brokers.values()
            for endpoint in registration.endpoints
            if registration.fenced and endpoint.listener == listener
        ]
    return found


API: Final = Api(ApiKey.DESCRIBE_CLUSTER, 0, 2, DescribeClusterRequest, handle)
