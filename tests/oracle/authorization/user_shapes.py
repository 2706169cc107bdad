"""Client quotas and SCRAM credentials by the administrator: which there can be."""

from __future__ import annotations

from headrace.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from headrace.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from headrace.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.oracle.authorization.person import User

Entity = tuple[tuple[str, str | None], ...]
RATE = (("producer_byte_rate", 1000.0),)
QUOTAS: dict[str, tuple[Entity, tuple[tuple[str, float], ...]]] = {
    "of a user": ((("user", "quoted"),), RATE),
    "of any user": ((("user", None),), RATE),
    "of a client": ((("client-id", "quoted"),), RATE),
    "of a user's client": ((("user", "quoted"), ("client-id", "quoted")), RATE),
    "of an address": ((("ip", "10.9.9.9"),), (("connection_creation_rate", 5.0),)),
    "of a name that is no address": ((("ip", "no address"),), (("connection_creation_rate", 5.0),)),
    "of an address and a user": ((("ip", "10.9.9.9"), ("user", "quoted")), RATE),
    "of an address, of bytes": ((("ip", "10.9.9.9"),), RATE),
    "of connections of a user": ((("user", "quoted"),), (("connection_creation_rate", 5.0),)),
    "of a strange kind": ((("stranger", "quoted"),), RATE),
    "of nobody": ((), RATE),
    "of an empty name": ((("user", ""),), RATE),
    "of a strange key": ((("user", "quoted"),), (("stranger", 5.0),)),
    "of half a byte": ((("user", "quoted"),), (("producer_byte_rate", 1000.5),)),
    "of nothing": ((("user", "quoted"),), (("producer_byte_rate", 0.0),)),
    "of less than nothing": ((("user", "quoted"),), (("consumer_byte_rate", -5.0),)),
    "of a part of the time": ((("user", "quoted"),), (("request_percentage", 12.5),)),
    "of mutations": ((("user", "quoted"),), (("controller_mutation_rate", 1.5),)),
    "of good and bad": ((("user", "half"),), (("consumer_byte_rate", 5.0), ("stranger", 5.0))),
}
EXACT, DEFAULT, ANY = 0, 1, 2
FILTERS: dict[str, tuple[tuple[tuple[str, int, str | None], ...], bool]] = {
    "all": ((), False),
    "all, strictly": ((), True),
    "a user": ((("user", EXACT, "quoted"),), False),
    "a user, strictly": ((("user", EXACT, "quoted"),), True),
    "the default user": ((("user", DEFAULT, None),), False),
    "any user": ((("user", ANY, None),), False),
    "any user, strictly": ((("user", ANY, None),), True),
    "a user's clients": ((("user", EXACT, "quoted"), ("client-id", ANY, None)), True),
    "an address": ((("ip", EXACT, "10.9.9.9"),), True),
    "an address and a user": ((("ip", ANY, None), ("user", ANY, None)), False),
    "a strange kind": ((("stranger", ANY, None),), False),
    "a kind twice": ((("user", ANY, None), ("user", ANY, None)), False),
    "a strange match": ((("user", 7, None),), False),
    "an empty kind": ((("", ANY, None),), False),
}
SHA_256, SHA_512 = 1, 2


def ask(admin: User) -> None:
    _quotas(admin)
    _credentials(admin)


def _entry(entity: Entity, values: tuple[tuple[str, float], ...], *, remove: bool = False) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[OpData(key=key, value=value, remove=remove) for key, value in values],
    )


def _quotas(admin: User) -> None:
    for validate_only in (True, False):
        for step, (entity, values) in QUOTAS.items():
            asked = AlterClientQuotasRequest(entries=[_entry(entity, values)], validate_only=validate_only)
            admin.ask(f"shapes: quota {step}, validate {validate_only}", asked, 1)
    both = [_entry((("user", "one"),), RATE), _entry((("stranger", "one"),), RATE)]
    admin.ask(
        "shapes: quotas of one that can be and one that cannot", AlterClientQuotasRequest(entries=both), 1
    )
    twice = [_entry((("user", "two"),), RATE), _entry((("user", "two"),), (("consumer_byte_rate", 5.0),))]
    twice_a_kind = [_entry((("user", "quoted"), ("user", "other")), RATE)]
    for step, entries in (("one user", twice), ("a kind", twice_a_kind)):
        asked = AlterClientQuotasRequest(entries=entries, validate_only=True)
        admin.ask(f"shapes: alter quotas of {step} twice", asked, 1)

    entry = _entry((("user", "last"),), RATE)
    admin.ask("shapes: the last quota", AlterClientQuotasRequest(entries=[entry]), 1)
    last = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type="user", match_type=EXACT, match="last")]
    )
    admin.wait_until(lambda: bool(admin.quietly(last, 1).entries))
    for step, (components, strict) in FILTERS.items():
        wanted = [
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ]
        admin.ask(
            f"shapes: quotas of {step}", DescribeClientQuotasRequest(components=wanted, strict=strict), 1
        )
    absent = _entry((("user", "absent"),), RATE, remove=True)
    admin.ask("shapes: remove an absent quota", AlterClientQuotasRequest(entries=[absent]), 1)


def _credentials(admin: User) -> None:
    def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
        size = 64 if mechanism == SHA_512 else 32
        return ScramCredentialUpsertion(
            name=name,
            mechanism=mechanism,
            iterations=iterations,
            salt=b"salt" * 4,
            salted_password=b"p" * size,
        )

    def deletion(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
        return ScramCredentialDeletion(name=name, mechanism=mechanism)

    shapes: dict[str, tuple[list[ScramCredentialUpsertion], list[ScramCredentialDeletion]]] = {
        "one": ([upsertion("one")], []),
        "both hashes": ([upsertion("two"), upsertion("two", SHA_512)], []),
        "a hash twice": ([upsertion("three"), upsertion("three")], []),
        "made and deleted": ([upsertion("four")], [deletion("four")]),
        "made, and deleted of another hash": ([upsertion("five")], [deletion("five", SHA_512)]),
        "few iterations": ([upsertion("six", iterations=4095)], []),
        "many iterations": ([upsertion("seven", iterations=16385)], []),
        "no name": ([upsertion("")], []),
        "an unknown hash": ([upsertion("eight", 7)], []),
        "no hash": ([upsertion("nine", 0)], []),
        "deleted of nobody": ([], [deletion("stranger")]),
        "deleted of an unknown hash": ([], [deletion("one", 7)]),
        "deleted without a name": ([], [deletion("")]),
        "good and bad": ([upsertion("ten"), upsertion("eleven", iterations=1)], [deletion("stranger")]),
        "nothing": ([], []),
    }
    for step, (upsertions, deletions) in shapes.items():
        asked = AlterUserScramCredentialsRequest(upsertions=upsertions, deletions=deletions)
        admin.ask(f"shapes: credentials, {step}", asked, 0)
    ten = DescribeUserScramCredentialsRequest(users=[UserName(name="ten")])
    admin.wait_until(lambda: not admin.quietly(ten, 0).results[0].error_code)
    for step, names in (
        ("one by one", ["one", "two", "three", "stranger"]),
        ("one twice", ["one", "one", "two"]),
        ("none", []),
    ):
        users = [UserName(name=name) for name in names]
        admin.ask(f"shapes: users, {step}", DescribeUserScramCredentialsRequest(users=users), 0)
    admin.ask("shapes: all users", DescribeUserScramCredentialsRequest(users=None), 0)
