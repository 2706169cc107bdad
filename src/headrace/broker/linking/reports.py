"""What a leader has to say of a link goes to the controller, which makes it part of the metadata."""

from __future__ import annotations

from headrace.broker.replicas.host import Channel
from headrace.controller.image import ResourceType
from headrace.controller.operations import ConfigOp
from headrace.core.errors import HeadraceError
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.messages.create_partitions_response import CreatePartitionsResponse
from headrace.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse

TIMEOUT_MS = 10_000


class Refused(HeadraceError):
    """The controller does not take it."""


class Reports:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def tell(self, topic: str, name: str, value: str) -> None:
        """Raises Refused, NotController or PeerUnavailable; then nobody knows, and it can be told again."""
        answer = await self._channel.request(
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=ResourceType.LINK,
                        resource_name=topic,
                        configs=[AlterableConfig(name=name, config_operation=ConfigOp.SET, value=value)],
                    )
                ]
            ),
            IncrementalAlterConfigsResponse,
        )
        for each in answer.responses:
            _require(each.error_code, each.error_message)

    async def grow(self, topic: str, partitions: int) -> None:
        """Add partitions, as the source has them."""
        answer = await self._channel.request(
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=topic, count=partitions, assignments=None)],
                timeout_ms=TIMEOUT_MS,
                validate_only=False,
            ),
            CreatePartitionsResponse,
        )
        for each in answer.results:
            _require(each.error_code, each.error_message)


def _require(code: int, message: str | None) -> None:
    if code:
        raise Refused(f"{ErrorCode(code).name}: {message or 'no more is said'}")
