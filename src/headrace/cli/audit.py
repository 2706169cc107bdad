"""`headrace audit ...`"""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "run": ("headrace.cli.audit_run:run", "Count and compare the tiers of topics; publish certificates."),
    "status": ("headrace.cli.audit_status:status", "Show what the audit says of each topic."),
    "report": ("headrace.cli.audit_report:report", "Draw the tiers over time."),
    "wait": ("headrace.cli.audit_wait:wait", "Block until a window of a topic is certified."),
    "retire": (
        "headrace.cli.audit_retire:retire",
        "Declare a producer dead, which reports no more.",
    ),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def audit() -> None:
    """Prove that every record arrived once: at the log, and in the lake."""
