"""Why a mirror, or one of its topics, does not go on. Each is a sentence that says what to do."""

from __future__ import annotations

from headrace.core.errors import HeadraceError


class MirrorRefused(HeadraceError):
    """It does not begin, or ends, with a sentence for whoever runs it."""


class SourceChanged(HeadraceError):
    """The source is not what it was when the batch was planned. Nothing of the batch is written, and the next
    plan says what has happened."""
