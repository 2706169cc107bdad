"""Rules, users, tokens and quotas that do not exist, some with names that nobody should have."""

from __future__ import annotations

from typing import Final

from headrace.client.access import Seen
from headrace.client.acls import AuthorizerSettings
from headrace.client.cluster import Cluster
from headrace.client.quotas import Quota
from headrace.client.tokens import Token
from headrace.client.users import User
from headrace.console.access.asking import AccessSource
from headrace.console.access.seen import AccessSeen, Denials, Rules
from headrace.doctor.model import Unknown
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_usage import Access
from headrace.security.scram_credential import ScramMechanism
from tests.unit.observe.made_up import NOW_MS

HOSTILE_USER: Final = "User:<script>document.title='taken'</script>\u202e/../x"
DAY_MS: Final = 86_400_000


def rule(
    principal: str,
    operation: Operation,
    name: str,
    kind: ResourceType = ResourceType.TOPIC,
    pattern: PatternType = PatternType.LITERAL,
    host: str = "*",
    permission: Permission = Permission.ALLOW,
) -> AclRule:
    return AclRule(kind, name, pattern, principal, host, operation, permission)


RULES: Final = (
    rule("User:billing", Operation.READ, "orders"),
    rule("User:billing", Operation.READ, "billing", ResourceType.GROUP),
    rule("User:shop", Operation.WRITE, "orders"),
    rule("User:shop", Operation.WRITE, "orders", host="10.0.0.66", permission=Permission.DENY),
    rule("User:ops", Operation.ALL, "*"),
    rule("User:ops", Operation.ALTER, "kafka-cluster", ResourceType.CLUSTER),
    rule("User:laptop", Operation.READ, "ord", pattern=PatternType.PREFIXED, host="10.0.0.7"),
    rule("User:intern", Operation.ALL, "*", permission=Permission.DENY),
    rule("User:*", Operation.DESCRIBE, "clicks"),
    rule(HOSTILE_USER, Operation.READ, "orders"),
)
SETTINGS: Final = AuthorizerSettings(frozenset(("User:admin",)), False)
SEEN: Final = AccessSeen(
    NOW_MS,
    Rules(RULES, SETTINGS),
    [
        User("billing", {ScramMechanism.SHA_512: 8192}),
        User("shop", {ScramMechanism.SHA_256: 4096, ScramMechanism.SHA_512: 8192}),
    ],
    [
        Token("Zk3nYQ", "User:billing", "User:admin", (), NOW_MS, NOW_MS + DAY_MS, NOW_MS + 7 * DAY_MS),
        Token("<b>id", HOSTILE_USER, "", (HOSTILE_USER,), NOW_MS, NOW_MS + DAY_MS, NOW_MS + DAY_MS),
    ],
    [
        Quota((("user", "shop"),), {"producer_byte_rate": 10_000_000.0, "request_percentage": 50.0}),
        Quota((("client-id", None), ("user", "<b>")), {"controller_mutation_rate": 2.5}),
    ],
    Denials(
        [
            Seen(Access("User:intern", Operation.READ, ResourceType.TOPIC, "orders"), "10.0.0.9", 17, NOW_MS),
            Seen(
                Access(HOSTILE_USER, Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster"),
                "10.0.0.9",
                1,
                NOW_MS,
            ),
        ],
        NOW_MS - DAY_MS,
        [3],
    ),
)
NOTHING: Final = Unknown("nothing listens at 127.0.0.1:1")
UNANSWERED: Final = AccessSeen(NOW_MS, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)


class MadeUpAccess(AccessSource):
    def __init__(self, found: AccessSeen) -> None:
        super().__init__(lambda: Cluster("127.0.0.1:1"))
        self.found = found

    async def seen(self) -> AccessSeen:
        return self.found
