"""Who may do what."""

from __future__ import annotations

from headrace.config.declare import boolean, text

AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)


def authorizer(value: str) -> str | None:
    if value in ("", *AUTHORIZERS):
        return None
    return f"no class is loaded here; write {AUTHORIZERS[0]} for ACLs, or nothing"


class AuthorizationProperties:
    authorizer_class_name = text(
        "authorizer.class.name",
        "",
        "Kafka's name of its authorizer (StandardAuthorizer, or AclAuthorizer of older files) switches ACLs "
        "on; empty lets everybody do everything.",
        check=authorizer,
    )
    super_users = text(
        "super.users", "", "Principals that may do everything, such as User:admin, separated by semicolons."
    )
    allow_everyone_if_no_acl_found = boolean(
        "allow.everyone.if.no.acl.found", False, "Whether a resource without any ACL is open to everybody."
    )
    headrace_authorizer_mode = text(
        "headrace.authorizer.mode",
        "enforce",
        "enforce denies what ACLs do not allow; shadow counts and logs it, and denies only"
        " what would outlast that mode: changes of rules and passwords, and tokens of others.",
        allowed=("enforce", "shadow"),
    )
