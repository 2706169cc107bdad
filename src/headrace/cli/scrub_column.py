"""The scrub in one cell of `headrace cluster status`: how far it is, when it last ended, what it found."""

from __future__ import annotations

from headrace.cli.values import duration_text
from headrace.client.broker_health import BrokerHealth, ScrubState
from headrace.client.health import Health

DAY_MS = 86_400_000


def is_told(seen: Health) -> bool:
    """Whether the column is worth its place: other brokers know of no scrub."""
    return any(told.scrub is not None for told in seen.brokers.values())


def cell(told: BrokerHealth | None, now_ms: int) -> str | None:
    if told is None or told.scrub is None:
        return None
    return _text(told.scrub, now_ms)


def _text(scrub: ScrubState, now_ms: int) -> str:
    parts = []
    if scrub.percent is None:
        parts.append("off")
    elif scrub.percent < 100 or not scrub.last_ended_ms:
        parts.append(f"{scrub.percent}%" if scrub.percent < 100 else "never")
    if scrub.last_ended_ms:
        parts.append(f"{_ago(now_ms - scrub.last_ended_ms)} ago")
    if scrub.damage_found:
        parts.append(f"{scrub.damage_found} damaged")
    return ", ".join(parts)


def _ago(age_ms: int) -> str:
    return f"{age_ms // DAY_MS}d" if age_ms >= DAY_MS else duration_text(max(age_ms // 1000 * 1000, 0))


def document(told: BrokerHealth | None) -> dict[str, object] | None:
    if told is None or told.scrub is None:
        return None
    return {
        "percent": told.scrub.percent,
        "last_ended_ms": told.scrub.last_ended_ms or None,
        "damage_found": told.scrub.damage_found,
    }
