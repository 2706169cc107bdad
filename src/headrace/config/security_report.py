"""The names under which a broker tells of its protection, by DescribeConfigs; `health.py` has the first such.

Whoever asks a Headrace broker for the setting `headrace.access` of itself is told who used which right and
who was denied which, since its start. `headrace.security` tells what is wrong with its own protection. Both
need DESCRIBE on the cluster too, as the list of rules does. Other brokers answer with an empty list.
"""

from __future__ import annotations

from typing import Final

from headrace.config.load_report import LOAD
from headrace.config.tier_report import TIER

ACCESS: Final = "headrace.access"
MODE: Final = "mode"
"""enforce, shadow, or NO_AUTHORIZER."""
NO_AUTHORIZER: Final = "none"
SINCE_MS: Final = "since.ms"
OVERFLOW: Final = "overflow"
"""How often something was not remembered because there is too much of it."""
USED: Final = "used."
DENIED: Final = "denied."
"""Begin the names of figures that are one access each, as a JSON list: principal, operation, resource type,
name, host, count, first and last time in milliseconds since 1970."""

SECURITY: Final = "headrace.security"
FINDING: Final = "finding."
"""Begins the names of figures that are one finding each, as a JSON list: level, subject, text, cure."""

NEED_DESCRIBE: Final = frozenset((ACCESS, SECURITY, LOAD, TIER))
