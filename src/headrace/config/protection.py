"""Properties that ask for protection: who may connect, what they may do, what others can overhear.

A broker that passed over such a property would serve everybody, and its operator would believe otherwise. So
one that is unknown, that names a class to load, or that asks for what is not there yet stops the start.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from headrace.config.broker_properties.authentication import MECHANISMS
from headrace.core.errors import ConfigError

JAAS: Final = "sasl.jaas.config"
PER_MECHANISM: Final = (JAAS, "connections.max.reauth.ms")
"""May stand under the prefix of a mechanism."""
DEFAULT_PRINCIPAL_BUILDER: Final = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
)
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer"
_HANDLER: Final = "sasl.server.callback.handler.class"
_KAFKAS_OWN: Final = {
    "principal.builder.class": (DEFAULT_PRINCIPAL_BUILDER,),
    "zookeeper.clientCnxnSocket": ("org.apache.zookeeper.ClientCnxnSocketNetty",),
    _HANDLER: (
        f"{_OAUTH}.OAuthBearerValidatorCallbackHandler",
        f"{_OAUTH}.secured.OAuthBearerValidatorCallbackHandler",
    ),
    "sasl.oauthbearer.jwt.validator.class": (
        f"{_OAUTH}.DefaultJwtValidator",
        f"{_OAUTH}.BrokerJwtValidator",
    ),
}
"""Classes that do in Kafka what is done here in any case. A file may name them."""

_MECHANISM: Final = "|".join(each.lower() for each in MECHANISMS)
_SCOPED: Final = re.compile(
    r"(?:listener\.name\.(?P<listener>.+?)\.)?"
    rf"(?:(?P<mechanism>{_MECHANISM})\.)?"
    r"(?P<name>(?:ssl|sasl|security)\..+|connections\.max\.reauth\.ms|principal\.builder\.class"
    r"|authorizer\..+|super\.users|allow\.everyone\..+|headrace\.authorizer\..+"
    r"|headrace\.oauthbearer\..+|headrace\.metrics\..+"
    r"|zookeeper\.(?:set\.acl|ssl\..+|clientCnxnSocket)|headrace\.zookeeper\..+)"
)
_ONLY_JAVAS: Final = (
    "ssl.provider",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
)
_BY_LISTENER: Final = ("ssl.", "sasl.", "connections.", "headrace.oauthbearer.")


class Scoped(NamedTuple):
    """A property's name, taken apart. `listener` and `mechanism` are in small letters, as Kafka has them."""

    listener: str | None
    mechanism: str | None
    name: str


def scope_of(full_name: str) -> Scoped | None:
    """None for a property that has nothing to do with protection."""
    found = _SCOPED.fullmatch(full_name)
    if found is not None:
        return Scoped(found["listener"], found["mechanism"], found["name"])
    return Scoped(None, None, full_name) if full_name.endswith(".jaas.config") else None


def require_known_protection(mapping: Mapping[str, str], known: Collection[str]) -> None:
    """Raises ConfigError with every property that is not understood."""
    complaints = []
    for full_name, text in sorted(mapping.items()):
        if not text.strip():
            continue  # it asks for nothing
        scoped = scope_of(full_name)
        complaint = None if scoped is None else _complaint(scoped, text.strip(), known)
        if complaint is not None:
            complaints.append(f"{full_name}: {complaint}")
    if complaints:
        raise ConfigError(
            f"{'; '.join(complaints)}. A broker that ignored them would be less protected than its file says:"
            " correct or remove them"
        )


def _complaint(scoped: Scoped, text: str, known: Collection[str]) -> str | None:
    name = scoped.name
    if text in _KAFKAS_OWN.get(name, ()) and (name != _HANDLER or scoped.mechanism == "oauthbearer"):
        return None
    if name.endswith(".class") or name in ("security.providers", "zookeeper.clientCnxnSocket"):
        return "no class is loaded here"
    if name in _ONLY_JAVAS:
        return "only Java has this"
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        return f"unknown property{f', did you mean {near[0]}?' if near else ''}"
    if name == JAAS and scoped.mechanism is None:
        return "it needs the mechanism before it, as in listener.name.<name>.plain.sasl.jaas.config"
    if scoped.mechanism is not None and name not in PER_MECHANISM:
        return f"it does not differ by mechanism: remove {scoped.mechanism}"
    if scoped.listener is not None and not name.startswith(_BY_LISTENER):
        return "it does not differ by listener"
    return None
