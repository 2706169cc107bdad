"""Where metrics are served, and to whom."""

from __future__ import annotations

from headrace.config.declare import names, optional_text, text
from headrace.config.http_listener import METHODS


class MetricsProperties:
    headrace_metrics_listener = text(
        "headrace.metrics.listener",
        "",
        "Address, host:port, where metrics are served over HTTP; by TLS with https:// before it. Empty "
        "serves none; a port without a host is bound to the loopback address. Any other needs https:// and "
        "authentication.",
    )
    headrace_metrics_authentication = names(
        "headrace.metrics.authentication",
        (),
        "How those who ask for metrics say who they are: basic (users with SCRAM), bearer, mtls. Where ACLs "
        "are on they need DESCRIBE on the cluster. Empty asks nobody on the loopback address, none on any "
        "address.",
        allowed=METHODS,
    )
    headrace_metrics_token_file = optional_text(
        "headrace.metrics.token.file", "File with lines user=token, for bearer. It is read at the start."
    )
