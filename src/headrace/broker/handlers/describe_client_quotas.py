"""DescribeClientQuotas: the quotas of the entities that a filter matches (KIP-546).

Versions 0-1. 1: flexible. Only what was set is described, not what follows from defaults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.broker.requests.slices import slices
from headrace.controller.quota_filter import QuotaComponent, QuotaFilter
from headrace.controller.quota_image import QuotaEntity, QuotaTable
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from headrace.protocol.messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

COMPARED_AT_ONCE: Final = 200


async def handle(
    context: RequestContext, request: DescribeClientQuotasRequest, _call: Call
) -> DescribeClientQuotasResponse:
    components = [
        QuotaComponent(each.entity_type, each.match_type, each.match) for each in request.components
    ]
    try:
        wanted = QuotaFilter.of(components, strict=request.strict)
    except HeadraceError as error:
        return DescribeClientQuotasResponse(
            error_code=code_of(error), error_message=text_of(error), entries=None
        )
    quotas = context.metadata.image.quotas
    entries: list[EntryData] = []
    async for entities in slices(context.runtime.turns, list(quotas), COMPARED_AT_ONCE):
        entries += [_entry(quotas, entity) for entity in entities if wanted.matches(entity)]
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def _entry(quotas: QuotaTable, entity: QuotaEntity) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[ValueData(key=key, value=value) for key, value in quotas.of(entity).items()],
    )


API: Final = Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, DescribeClientQuotasRequest, handle)
