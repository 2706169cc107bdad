"""WriteTxnMarkers: end transactions in partitions that this broker leads.

Versions 1-2. 1: flexible. 2: the rules that the producer's epoch is checked by. Sent by coordinators, and by
an administrator who aborts a transaction that no coordinator knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.transactions.marker_writes import MarkerWrites
from headrace.core.completion import Completion
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from headrace.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


def handle(
    context: RequestContext,
    request: WriteTxnMarkersRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> Completion[WriteTxnMarkersResponse]:
    return MarkerWrites(context.runtime, context.coordinators.markers, request).response


API: Final = Api(ApiKey.WRITE_TXN_MARKERS, 1, 2, WriteTxnMarkersRequest, handle)
