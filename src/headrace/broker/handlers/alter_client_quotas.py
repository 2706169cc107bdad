"""AlterClientQuotas: set and remove quotas of users, client ids and addresses (KIP-546).

Versions 0-1. 1: flexible. Each entity is altered as a whole or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import each_in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.controller.quota_image import entity_of
from headrace.controller.quotas import MOST_CHANGES, MOST_TYPES
from headrace.controller.security_operations import AlteredQuota, QuotaAlteration, QuotaChange
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages import alter_client_quotas_response as response
from headrace.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntryData

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: AlterClientQuotasRequest, _call: Call
) -> response.AlterClientQuotasResponse:
    alterations = [_alteration(entry) for entry in request.entries]
    outcomes = await each_in_time(
        context.runtime,
        context.peers.reachability,
        context.controller.submit(
            lambda machine: machine.alter_client_quotas(alterations), request.validate_only
        ),
        lambda error: [AlteredQuota(alteration.entity, error) for alteration in alterations],
    )
    return response.AlterClientQuotasResponse(
        entries=[
            response.EntryData(
                error_code=code_of(outcome.error),
                error_message=text_of(outcome.error),
                entity=[
                    response.EntityData(entity_type=kind, entity_name=name) for kind, name in outcome.entity
                ],
            )
            for outcome in outcomes
        ]
    )


def _alteration(entry: EntryData) -> QuotaAlteration:
    """What is one too many is refused, and what follows it is not looked at."""
    return QuotaAlteration(
        entity_of((part.entity_type, part.entity_name) for part in entry.entity[: MOST_TYPES + 1]),
        [QuotaChange(op.key, None if op.remove else op.value) for op in entry.ops[: MOST_CHANGES + 1]],
    )


API: Final = Api(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, AlterClientQuotasRequest, handle, at_controller=True)
