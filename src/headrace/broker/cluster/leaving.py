"""A controlled shutdown: leaderships move before the broker goes, so that no client waits for a timeout."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headrace.core.errors import HeadraceError
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from headrace.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

POLL_SECONDS = 0.02
MOST_SECONDS = 30.0


async def leave(broker: Broker) -> None:
    """Ask the controller to move what this broker leads. A refusal delays the stop and never prevents it.

    What nobody else in sync can take is waited for as long as all retries would take, and no longer: a whole
    cluster that stops ends with a broker that has nobody to hand over to.
    """
    if not broker.config.controlled_shutdown_enable or broker.is_standalone or broker.broker_epoch < 0:
        return
    if broker.failure.done() and broker.controller.is_active:
        return  # it would ask itself, and can commit nothing: its session ends, and others decide
    deadline = broker.loop.time() + MOST_SECONDS
    backoff = broker.config.controlled_shutdown_retry_backoff_ms / 1000
    patience = broker.loop.time() + backoff * broker.config.controlled_shutdown_max_retries
    failures = 0
    while broker.loop.time() < deadline and failures <= broker.config.controlled_shutdown_max_retries:
        try:
            answer = await broker.channel.request(
                BrokerHeartbeatRequest(
                    broker_id=broker.broker_id,
                    broker_epoch=broker.broker_epoch,
                    current_metadata_offset=broker.metadata_offset,
                    want_shut_down=True,
                ),
                BrokerHeartbeatResponse,
            )
        except HeadraceError as error:
            failures += 1
            broker.log.warning("controlled shutdown: the controller did not answer", error=str(error))
            if broker.failure.done():
                return  # whoever waits for this broker waits in vain
            await asyncio.sleep(backoff)
            continue
        if answer.error_code:
            failures += 1
            name = ErrorCode(answer.error_code).name
            broker.log.warning("controlled shutdown: the controller refused", error=name)
            if broker.failure.done():
                return
            await asyncio.sleep(backoff)
        elif broker.failure.done():
            return  # without a disk it cannot follow the metadata, nor hear that it leads no more
        elif answer.should_shut_down and not any(p.is_leader for p in broker.partitions):
            return
        elif not answer.should_shut_down and broker.loop.time() >= patience:
            break
        else:
            await asyncio.sleep(POLL_SECONDS)
    leading = sum(partition.is_leader for partition in broker.partitions)
    broker.log.warning("stopping although not every leadership has moved", leaderships=leading)
