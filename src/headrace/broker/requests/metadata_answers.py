"""What Metadata has answered: whole answers and encoded rows, until something in them changes."""

from __future__ import annotations

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.requests.answer_cache import AnswerCache
from headrace.broker.requests.metadata_rows import MetadataRows
from headrace.broker.runtime.runtime import Runtime


class MetadataAnswers:
    def __init__(self, runtime: Runtime, metadata: MetadataCache) -> None:
        self.whole = AnswerCache(runtime.memory.answer_cache)
        self.rows = MetadataRows(runtime, metadata)

    def forget(self) -> None:
        """What Metadata would say has changed, though the metadata has not."""
        self.whole.clear()
        self.rows.clear()
