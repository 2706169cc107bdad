"""What a connector raised in a task comes back as Spark's failure, with a traceback as text. People are told
what the connector said, and a GiveUp stays one. Pure."""

from __future__ import annotations

import re
from typing import Final

from headrace.connect.api import ConnectorFailure, GiveUp

_KINDS: Final = {kind.__name__: kind for kind in (ConnectorFailure, GiveUp)}
_LAST_LINE: Final = re.compile(
    rf"^{re.escape(ConnectorFailure.__module__)}\.({'|'.join(_KINDS)}): (.+)$", re.MULTILINE
)


def of_connector(error: BaseException) -> ConnectorFailure | None:
    """None where it is somebody else's."""
    if isinstance(error, ConnectorFailure):
        return None
    found = _LAST_LINE.findall(str(error))
    if not found:
        return None
    kind, text = found[-1]
    return _KINDS[kind](text)
