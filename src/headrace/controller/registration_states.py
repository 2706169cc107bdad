"""What a BrokerRegistrationChangeRecord says of a broker: in each field 0 is no change."""

from __future__ import annotations

from typing import Final

FENCED: Final = 1
UNFENCED: Final = -1
STOPPING: Final = 1
