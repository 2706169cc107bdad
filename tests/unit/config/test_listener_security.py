"""What protects a listener: the broker's properties, and those under the listener's own prefix."""

from __future__ import annotations

import pickle

import pytest

from headrace.config.broker import BROKER_PROPERTIES, BrokerConfig
from headrace.config.describe import describe_broker
from headrace.config.secret import Secret
from headrace.core.errors import ConfigError

CANARY = "canary-3f9b"
STORES = {"ssl.keystore.location": "/k.pem", "ssl.truststore.location": "/t.pem"}
JAAS = f'x.PlainLoginModule required user_alice="{CANARY}";'


def parse(listeners: str, **settings: str) -> BrokerConfig:
    return BrokerConfig.parse({"listeners": listeners, **STORES, **settings})


def test_without_tls_a_listener_has_none() -> None:
    security = BrokerConfig.parse({}).security_of("PLAINTEXT")
    assert (security.tls, security.mechanisms, security.client_auth) == (None, (), "none")
    assert not security.is_authenticated


def test_a_listener_takes_the_brokers_properties_and_its_own_count_more() -> None:
    config = parse(
        "SSL://:1,INSIDE://:2",
        **{
            "listener.security.protocol.map": "SSL:SSL,INSIDE:SSL",
            "ssl.client.auth": "requested",
            "listener.name.inside.ssl.client.auth": "required",
            "listener.name.inside.ssl.keystore.location": "/inside.pem",
            "listener.name.inside.ssl.enabled.protocols": "TLSv1.3",
        },
    )
    outside, inside = config.security_of("SSL").tls, config.security_of("INSIDE").tls
    assert outside is not None
    assert inside is not None
    assert (outside.client_auth, inside.client_auth) == ("requested", "required")
    assert outside.files == ("/k.pem", "/t.pem")
    assert inside.files == ("/inside.pem", "/t.pem")
    assert (outside.versions, inside.versions) == (("TLSv1.2", "TLSv1.3"), ("TLSv1.3",))
    assert config.security_of("INSIDE").is_authenticated
    assert not config.security_of("SSL").is_authenticated


def test_on_sasl_ssl_certificates_are_asked_for_only_under_its_prefix() -> None:
    sasl = {"sasl.enabled.mechanisms": "SCRAM-SHA-256", "ssl.client.auth": "required"}
    assert parse("SASL_SSL://:1", **sasl).security_of("SASL_SSL").client_auth == "none"
    own = {**sasl, "listener.name.sasl_ssl.ssl.client.auth": "requested"}
    assert parse("SASL_SSL://:1", **own).security_of("SASL_SSL").client_auth == "requested"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"ssl.keystore.location": ""}, "SSL speaks TLS and has no certificate"),
        ({"ssl.keystore.location": "", "ssl.keystore.key": CANARY}, "belong together"),
        ({"ssl.keystore.key": CANARY}, "use the file or the text"),
        ({"ssl.truststore.certificates": CANARY}, "use the file or the text"),
        ({"ssl.client.auth": "required", "ssl.truststore.location": ""}, "does not know whom to trust"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "'TLSv1.1' is not one of"),
        ({"ssl.enabled.protocols": "TLSv1.3", "ssl.protocol": "TLSv1.2"}, "leave no version"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "write https, or nothing"),
        ({"listener.name.ssl.ssl.client.auth": "yes"}, r"listener\.name\.ssl\.ssl\.client\.auth=yes"),
    ],
)
def test_tls_that_cannot_be_is_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        parse("SSL://:1", **settings)
    assert CANARY not in str(caught.value)


def test_a_sasl_listener_needs_a_mechanism_and_plain_needs_users() -> None:
    with pytest.raises(ConfigError, match="has no mechanism"):
        parse("SASL_SSL://:1")
    with pytest.raises(ConfigError, match="PLAIN and no users"):
        parse("SASL_SSL://:1", **{"sasl.enabled.mechanisms": "PLAIN"})


@pytest.mark.parametrize("name", ["listener.name.sasl_ssl.plain.sasl.jaas.config", "plain.sasl.jaas.config"])
def test_users_of_plain(name: str) -> None:
    config = parse(
        "SASL_SSL://:1",
        **{
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            name: JAAS,
            "connections.max.reauth.ms": "5000",
            "listener.name.sasl_ssl.plain.connections.max.reauth.ms": "1000",
        },
    )
    security = config.security_of("SASL_SSL")
    assert security.jaas == {"PLAIN": Secret(JAAS)}
    assert security.reauth_ms == {"PLAIN": 1000, "SCRAM-SHA-512": 5000}
    assert security.max_receive_bytes == 65536


def test_plain_without_tls_has_to_be_asked_for_by_the_listeners_name() -> None:
    users = {"listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS}
    with pytest.raises(ConfigError, match="everybody on the way can read"):
        parse("SASL_PLAINTEXT://:1", **{"sasl.enabled.mechanisms": "PLAIN"}, **users)
    named = {"listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN"}
    assert parse("SASL_PLAINTEXT://:1", **named, **users).security_of("SASL_PLAINTEXT").mechanisms == (
        "PLAIN",
    )


def test_brokers_use_the_listener_with_the_named_protocol() -> None:
    two = "PLAINTEXT://:1,SSL://:2"
    assert parse(two).inter_broker_listener.name == "PLAINTEXT"
    assert parse(two, **{"security.inter.broker.protocol": "SSL"}).inter_broker_listener.name == "SSL"
    both = {"security.inter.broker.protocol": "SSL", "inter.broker.listener.name": "SSL"}
    with pytest.raises(ConfigError, match="both set"):
        parse(two, **both)


def test_brokers_of_a_cluster_need_a_user_on_a_listener_with_sasl() -> None:
    sasl = {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    parse("SASL_SSL://:1", **sasl)  # it has nobody to speak to
    cluster = {**sasl, "zookeeper.connect": "zk:2181"}
    with pytest.raises(ConfigError, match=r"set sasl\.mechanism\.inter\.broker\.protocol"):
        parse("SASL_SSL://:1", **cluster)
    cluster["sasl.mechanism.inter.broker.protocol"] = "SCRAM-SHA-256"
    with pytest.raises(ConfigError, match="brokers have no user there"):
        parse("SASL_SSL://:1", **cluster)
    cluster["listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config"] = JAAS
    parse("SASL_SSL://:1", **cluster)


@pytest.mark.parametrize(
    ("protocol", "settings", "lacking"),
    [
        ("PLAINTEXT", {}, "without encryption or authentication"),
        ("SASL_PLAINTEXT", {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}, "without encryption"),
        ("SSL", {}, "without authentication"),
        ("SSL", {"ssl.client.auth": "required"}, None),
        ("SASL_SSL", {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}, None),
    ],
)
def test_what_is_said_of_listeners_that_are_reachable(
    protocol: str, settings: dict[str, str], lacking: str | None
) -> None:
    outside = {"advertised.listeners": f"{protocol}://broker.example:1"}
    config = parse(f"{protocol}://0.0.0.0:1", **outside, **settings)
    said = [each for each in config.warnings if "reachable" in each]
    assert [each.rpartition(", ")[2] for each in said] == ([] if lacking is None else [lacking])


def test_properties_that_protect_nothing_are_said() -> None:
    config = parse("PLAINTEXT://:1", **{"sasl.enabled.mechanisms": "PLAIN"})
    assert len([each for each in config.warnings if "no listener speaks" in each]) == 2


def test_secrets_are_not_shown() -> None:
    secrets = {
        name: CANARY
        for name, declared in BROKER_PROPERTIES.items()
        if declared.sensitive and name != "sasl.jaas.config"
    }
    del secrets["ssl.truststore.certificates"]
    config = BrokerConfig.parse(
        {
            "listeners": "SASL_SSL://:1",
            "ssl.truststore.location": "/t.p12",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.truststore.location": "/t.p12",
            **secrets,
            "headrace.zookeeper.digest": f"user:{CANARY}",
        }
    )
    security = config.security_of("SASL_SSL")
    assert security.tls is not None
    assert security.tls.key_store.key == Secret(CANARY)
    described = describe_broker(config, {}, {})
    shown = [repr(security), str(config.__dict__["listener_security"]), repr(described), *config.warnings]
    shown.append(repr(config.zookeeper_security))
    assert not [text for text in shown if CANARY in text]
    assert {entry.name: entry.value for entry in described}["ssl.keystore.password"] is None


def test_a_secret_is_compared_and_never_written() -> None:
    secret = Secret(CANARY)
    assert secret == Secret(CANARY) != Secret("other")
    assert secret.reveal() == CANARY
    assert CANARY not in f"{secret} {secret!r}"
    assert bool(secret)
    assert not Secret("")
    with pytest.raises(TypeError):
        pickle.dumps(secret)
