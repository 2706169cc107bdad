"""The columns that a record keeps in every table, beside those that its value becomes."""

from __future__ import annotations

from typing import Final

TOPIC: Final = "topic"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
TIMESTAMP: Final = "timestamp"
KEY: Final = "key"
HEADERS: Final = "headers"
#: The value as it came. Tables have it where nothing was decoded.
VALUE: Final = "value"

#: In the order of the tables. The first three name a record for good.
RECORD_COLUMNS: Final = (TOPIC, PARTITION, OFFSET, TIMESTAMP, KEY, HEADERS)
IDENTITY: Final = (TOPIC, PARTITION, OFFSET)
