"""How the connection to ZooKeeper is protected, from the properties `zookeeper.ssl.` and those of ACLs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headrace.config.broker_properties.zookeeper import ZooKeeperProperties
from headrace.config.property import Property
from headrace.config.secret import Secret
from headrace.config.tls_properties import TlsProperties, tls_properties
from headrace.core.errors import ConfigError

if TYPE_CHECKING:
    from headrace.config.broker import BrokerConfig

_PREFIX: Final = "zookeeper."
_OWN: Final = {each.name for each in vars(ZooKeeperProperties).values() if isinstance(each, Property)}
NEED_TLS: Final = (
    "zookeeper.ssl.keystore.location",
    "zookeeper.ssl.truststore.location",
    "headrace.zookeeper.digest",
)


@dataclass(frozen=True, slots=True)
class ZooKeeperSecurity:
    tls: TlsProperties | None = None
    """None: everything is said in the clear."""
    digest: Secret | None = None
    """user:password"""
    sets_acl: bool = False
    """Every node that is made belongs to its maker alone."""


OPEN: Final = ZooKeeperSecurity()


def zookeeper_security(config: BrokerConfig) -> ZooKeeperSecurity:
    """Raises ConfigError where less would be protected than the file says."""
    if not config.zookeeper_ssl_client_enable:
        given = [name for name in NEED_TLS if config[name]]
        if config.zookeeper_set_acl:
            given.append("zookeeper.set.acl=true")
        if given:
            raise ConfigError(
                f"{' and '.join(given)} without zookeeper.ssl.client.enable=true: ZooKeeper would be spoken"
                " to in the clear, by nobody in particular; set it"
            )
        return OPEN

    def value_of(declared: Property[Any]) -> Any:
        name = _PREFIX + declared.name
        return config[name] if name in _OWN else declared.default

    tls = tls_properties(value_of)
    if not tls.trust_store.is_there:
        raise ConfigError(
            "zookeeper.ssl.client.enable is set, and it is not known which authority signs the certificates"
            " of ZooKeeper's servers: set zookeeper.ssl.truststore.location"
        )
    digest = config.headrace_zookeeper_digest or None
    if digest is not None and not all(digest.reveal().partition(":")[::2]):
        raise ConfigError("headrace.zookeeper.digest is not user:password")
    if config.zookeeper_set_acl and not tls.key_store.is_there and digest is None:
        raise ConfigError(
            "zookeeper.set.acl needs somebody to whom the nodes belong: set zookeeper.ssl.keystore.location,"
            " with a certificate of the same subject for all brokers, or headrace.zookeeper.digest"
        )
    return ZooKeeperSecurity(tls, digest, config.zookeeper_set_acl)
