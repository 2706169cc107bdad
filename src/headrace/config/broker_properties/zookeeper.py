"""How ZooKeeper is spoken to: TLS, and who may read and change the nodes that brokers make."""

from __future__ import annotations

from headrace.config.broker_properties.tls import STORE_TYPES
from headrace.config.declare import boolean, optional_secret, optional_text, text


class ZooKeeperProperties:
    zookeeper_ssl_client_enable = boolean(
        "zookeeper.ssl.client.enable",
        False,
        "Speak TLS to ZooKeeper. zookeeper.connect then names the secureClientPort of its servers, by hosts "
        "that stand in their certificates.",
    )
    zookeeper_ssl_keystore_type = text(
        "zookeeper.ssl.keystore.type",
        "JKS",
        "Form of the key store: PEM or PKCS12. With the default the file itself tells.",
        allowed=STORE_TYPES,
    )
    zookeeper_ssl_keystore_location = optional_text(
        "zookeeper.ssl.keystore.location",
        "File with the private key and the certificates that this broker shows to ZooKeeper. With "
        "zookeeper.set.acl the subject must be the same for all brokers: it owns the nodes.",
    )
    zookeeper_ssl_keystore_password = optional_secret(
        "zookeeper.ssl.keystore.password", "Password of a PKCS12 key store, or of an encrypted key in PEM."
    )
    zookeeper_ssl_truststore_type = text(
        "zookeeper.ssl.truststore.type",
        "JKS",
        "Form of the trust store: PEM or PKCS12. With the default the file itself tells.",
        allowed=STORE_TYPES,
    )
    zookeeper_ssl_truststore_location = optional_text(
        "zookeeper.ssl.truststore.location",
        "File with the authorities that sign the certificates of ZooKeeper's servers. No others are trusted.",
    )
    zookeeper_ssl_truststore_password = optional_secret(
        "zookeeper.ssl.truststore.password", "Password of a PKCS12 trust store."
    )
    zookeeper_set_acl = boolean(
        "zookeeper.set.acl",
        False,
        "Give every node that is made to its maker alone: to the subject of the certificate, or to the user "
        "of headrace.zookeeper.digest. Needs TLS.",
    )
    headrace_zookeeper_digest = optional_secret(
        "headrace.zookeeper.digest",
        "user:password for ZooKeeper, the same for all brokers, instead of a certificate or beside it. "
        "Needs TLS.",
    )
