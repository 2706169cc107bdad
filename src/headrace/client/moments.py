"""Moments as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def utc(milliseconds: int) -> str:
    """Since 1970, as 2026-11-18T02:58:11Z."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
