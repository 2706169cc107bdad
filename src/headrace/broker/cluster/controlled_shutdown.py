"""A controlled shutdown: leaderships move before the broker goes, so that no client waits for a timeout."""

from __future__ import annotations

import asyncio

from headrace.broker.cluster.channel import ControllerChannel
from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.shell import Controller
from headrace.core.errors import HeadraceError
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from headrace.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse

POLL_SECONDS = 0.02
MOST_SECONDS = 30.0


async def leave(
    runtime: Runtime,
    metadata: MetadataCache,
    controller: Controller,
    node: BrokerLifecycle,
    channel: ControllerChannel,
    partitions: PartitionTable,
) -> None:
    """Ask the controller to move what this broker leads. A refusal delays the stop and never prevents it.

    What nobody else in sync can take is waited for as long as all retries would take, and no longer: a whole
    cluster that stops ends with a broker that has nobody to hand over to.
    """
    if not runtime.config.controlled_shutdown_enable or runtime.is_standalone or node.broker_epoch < 0:
        return
    if runtime.failure.done() and controller.is_active:
        return  # it would ask itself, and can commit nothing: its session ends, and others decide
    deadline = runtime.loop.time() + MOST_SECONDS
    backoff = runtime.config.controlled_shutdown_retry_backoff_ms / 1000
    patience = runtime.loop.time() + backoff * runtime.config.controlled_shutdown_max_retries
    failures = 0
    while runtime.loop.time() < deadline and failures <= runtime.config.controlled_shutdown_max_retries:
        try:
            answer = await channel.request(
                BrokerHeartbeatRequest(
                    broker_id=runtime.broker_id,
                    broker_epoch=node.broker_epoch,
                    current_metadata_offset=metadata.offset,
                    want_shut_down=True,
                ),
                BrokerHeartbeatResponse,
            )
        except HeadraceError as error:
            failures += 1
            runtime.log.warning("controlled shutdown: the controller did not answer", error=str(error))
            if runtime.failure.done():
                return  # whoever waits for this broker waits in vain
            await asyncio.sleep(backoff)
            continue
        if answer.error_code:
            failures += 1
            name = ErrorCode(answer.error_code).name
            runtime.log.warning("controlled shutdown: the controller refused", error=name)
            if runtime.failure.done():
                return
            await asyncio.sleep(backoff)
        elif runtime.failure.done():
            return  # without a disk it cannot follow the metadata, nor hear that it leads no more
        elif answer.should_shut_down and not any(p.is_leader for p in partitions):
            return
        elif not answer.should_shut_down and runtime.loop.time() >= patience:
            break
        else:
            await asyncio.sleep(POLL_SECONDS)
    leading = sum(partition.is_leader for partition in partitions)
    runtime.log.warning("stopping although not every leadership has moved", leaderships=leading)
