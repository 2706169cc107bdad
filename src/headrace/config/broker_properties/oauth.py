"""OAUTHBEARER: whose tokens are believed. All of them may differ by listener."""

from __future__ import annotations

from headrace.config.declare import int32, int64, names, optional_text, text
from headrace.config.property import Status


class OAuthProperties:
    sasl_oauthbearer_jwks_endpoint_url = optional_text(
        "sasl.oauthbearer.jwks.endpoint.url",
        "Where the issuer's public keys are: an https: URL, or a file: URL below "
        "headrace.oauthbearer.allowed.directory. OAUTHBEARER does not start without it.",
    )
    sasl_oauthbearer_expected_issuer = optional_text(
        "sasl.oauthbearer.expected.issuer",
        "What a token has to have as its issuer (iss). OAUTHBEARER does not start without it.",
    )
    sasl_oauthbearer_expected_audience = names(
        "sasl.oauthbearer.expected.audience",
        (),
        "A token has to be meant for one of these (aud). OAUTHBEARER does not start without it.",
    )
    sasl_oauthbearer_sub_claim_name = text(
        "sasl.oauthbearer.sub.claim.name", "sub", "The claim of a token that has the user's name."
    )
    sasl_oauthbearer_scope_claim_name = text(
        "sasl.oauthbearer.scope.claim.name",
        "scope",
        "Accepted so that a Kafka file can be used as it is. Scopes decide nothing, here as in Kafka.",
        status=Status.LATER,
    )
    sasl_oauthbearer_clock_skew_seconds = int32(
        "sasl.oauthbearer.clock.skew.seconds",
        30,
        "By how much the clocks of the issuer and of a broker may differ. A token and its session count for "
        "this much longer.",
        at_least=0,
        at_most=3600,
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = int64(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3_600_000,
        "How often the keys are fetched. A key that is not known is looked for at once, and at most once a "
        "minute.",
        at_least=1000,
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = int64(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        100,
        "How long to wait before keys that could not be fetched are tried again. The wait doubles each time.",
        at_least=1,
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = int64(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10_000,
        "The longest of these waits.",
        at_least=100,
    )
    headrace_oauthbearer_allowed_directory = optional_text(
        "headrace.oauthbearer.allowed.directory",
        "The directory below which a file: URL of keys has to be.",
    )
