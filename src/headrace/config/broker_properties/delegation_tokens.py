"""Delegation tokens (KIP-48): passwords of limited life."""

from __future__ import annotations

from headrace.config.declare import int64, optional_secret


class DelegationTokenProperties:
    delegation_token_secret_key = optional_secret(
        "delegation.token.secret.key",
        "The key from which the secrets of all delegation tokens are made, the same on every broker. Without "
        "it there are no tokens.",
        aliases=("delegation.token.master.key",),
    )
    delegation_token_max_lifetime_ms = int64(
        "delegation.token.max.lifetime.ms",
        604_800_000,
        "A token ends after this long, however often it is renewed.",
        at_least=1,
    )
    delegation_token_expiry_time_ms = int64(
        "delegation.token.expiry.time.ms",
        86_400_000,
        "A token ends after this long, unless it is renewed.",
        at_least=1,
    )
    delegation_token_expiry_check_interval_ms = int64(
        "delegation.token.expiry.check.interval.ms",
        3_600_000,
        "How often the controller removes expired tokens from the metadata.",
        at_least=1,
    )
