"""ListGroups: every group that this broker coordinates, of any type.

Versions 0-5. 3: flexible. 4: states, and a filter by them (KIP-518). 5: types, and a
filter by them (KIP-848).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.api import Api, Call
from headrace.core.errors import HeadraceError, NotCoordinator
from headrace.groups.listing import filter_of
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(context: RequestContext, request: ListGroupsRequest, call: Call) -> ListGroupsResponse:  # noqa: ARG001 - every handler has this shape
    coordinator = context.coordinators.groups
    if coordinator.is_loading:
        # Half a list would look like a whole one.
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states, types = filter_of(request.states_filter), filter_of(request.types_filter)
    groups: list[ListedGroup] = []
    for index, _ in list(coordinator.loaded()):
        if context.runtime.turns.is_over:
            await context.runtime.turns.next()
        try:
            groups += await coordinator.ask_partition(
                index,
                lambda shard, _, _now_ms: shard.list_groups(states, types),
                writes=False,
            )
        except NotCoordinator:
            continue
        except HeadraceError as error:
            return ListGroupsResponse(error_code=refusal_code(error))
    return ListGroupsResponse(groups=groups)


API: Final = Api(ApiKey.LIST_GROUPS, 0, 5, ListGroupsRequest, handle)
