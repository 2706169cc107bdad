"""Delegation tokens: who may make one for whom, see it, renew it and expire it."""

from __future__ import annotations

from typing import Any

from headrace.protocol.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from headrace.protocol.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from headrace.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from headrace.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from tests.oracle.authorization.person import Person
from tests.oracle.authorization.world import World
from tests.oracle.conversation import versions

NOW, HOUR_MS = -1, 3_600_000


def ask(person: Person, world: World) -> None:
    own = _create(person)
    _describe(person)
    theirs = world.tokens.get(person.state, own)
    world.tokens.setdefault(person.state, own)
    _change(person, own, theirs)


def _create(person: Person) -> bytes:
    """The HMAC of the person's last token of its own."""
    made: list[bytes] = []
    for version in versions(CreateDelegationTokenRequest):
        renewers = [CreatableRenewers(principal_type="User", principal_name="bob")]
        for step, lifetime_ms in (("a token", -1), ("a short token", 2 * HOUR_MS)):
            asked = CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=lifetime_ms)
            if version >= 3:
                asked.owner_principal_type = asked.owner_principal_name = None
            made.append(person.ask(f"create {step}", asked, version).hmac)
    own = made[-1]
    for owner in ("alice", "bob", "stranger"):
        asked = CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name=owner, max_lifetime_ms=-1
        )
        made.append(person.ask(f"create a token of {owner}", asked, 3).hmac)
    strange = CreatableRenewers(principal_type="Role", principal_name="x")
    asked = CreateDelegationTokenRequest(renewers=[strange], max_lifetime_ms=-1)
    made.append(person.ask("create with a strange renewer", asked, 3).hmac)
    wanted = {each for each in made if each}
    _wait(person, lambda found: wanted <= {token.hmac for token in found})
    return own


def _wait(person: Person, is_there: Any) -> None:
    """Kafka's controller answers before its brokers know."""
    everything = DescribeDelegationTokenRequest(owners=None)
    person.admin.wait_until(lambda: is_there(person.admin.quietly(everything, 3).tokens))


def _describe(person: Person) -> None:
    for version in versions(DescribeDelegationTokenRequest):
        for names in (["alice"], ["bob"], ["alice", "stranger"], [], None):
            owners = None
            if names is not None:
                owners = [
                    DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in names
                ]
            asked = DescribeDelegationTokenRequest(owners=owners)
            person.ask(f"describe tokens of {names}", asked, version)


def _change(person: Person, own: bytes, theirs: bytes) -> None:
    """`theirs` is the first person's: bob may renew it, mallory may not."""
    for version in versions(RenewDelegationTokenRequest):
        for step, hmac in (("own", own), ("another's", theirs), ("nobody's", b"h"), ("an empty", b"")):
            renew = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=HOUR_MS)
            person.ask(f"renew {step} token", renew, version)
            later = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=HOUR_MS)
            person.ask(f"expire {step} token in an hour", later, version)
    if own != theirs:
        person.ask("expire own token", ExpireDelegationTokenRequest(hmac=own, expiry_time_period_ms=NOW), 2)
        _wait(person, lambda found: all(token.hmac != own for token in found))
        gone = RenewDelegationTokenRequest(hmac=own, renew_period_ms=HOUR_MS)
        person.ask("renew a token that is gone", gone, 2)
