"""GSSAPI: whose tickets a listener takes, and who they are for. All of them may differ by listener."""

from __future__ import annotations

from headrace.config.declare import int64, names, real, text
from headrace.config.property import Status

_NO_LOGIN = (
    "Accepted so that a Kafka file can be used as it is. A broker takes tickets, and gets none itself."
)


class KerberosProperties:
    sasl_kerberos_service_name = text(
        "sasl.kerberos.service.name",
        "kafka",
        "What clients ask for tickets of: the first part of the principal in GSSAPI's sasl.jaas.config. "
        "Clients have to be told the same.",
    )
    sasl_kerberos_principal_to_local_rules = names(
        "sasl.kerberos.principal.to.local.rules",
        ("DEFAULT",),
        "How the name of a Kerberos principal becomes that of a user: rules, of which the first that applies "
        "counts. DEFAULT takes the first part of names in the default realm. Without a rule nobody logs in.",
    )
    sasl_kerberos_kinit_cmd = text(
        "sasl.kerberos.kinit.cmd", "/usr/bin/kinit", _NO_LOGIN, status=Status.LATER
    )
    sasl_kerberos_min_time_before_relogin = int64(
        "sasl.kerberos.min.time.before.relogin", 60_000, _NO_LOGIN, status=Status.LATER
    )
    sasl_kerberos_ticket_renew_jitter = real(
        "sasl.kerberos.ticket.renew.jitter", 0.05, _NO_LOGIN, status=Status.LATER
    )
    sasl_kerberos_ticket_renew_window_factor = real(
        "sasl.kerberos.ticket.renew.window.factor", 0.8, _NO_LOGIN, status=Status.LATER
    )
