"""OAUTHBEARER with the Java client: tokens from a file, and those that nobody has signed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AclOperation, NewTopic, ResourceType

from tests.apache_kafka import KafkaTools
from tests.broker_process import write_properties
from tests.guarded_broker import SECONDS, Guarded
from tests.token_issuer import AUDIENCE, FOREIGN_KEY, ISSUER, issuers_keys, token

PACKAGE = "org.apache.kafka.common.security.oauthbearer"


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("bearer")
    keys = directory / "keys.json"
    keys.write_bytes(issuers_keys())
    made = Guarded(
        directory,
        **{
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "headrace.oauthbearer.allowed.directory": str(directory),
            # As a file of Kafka's has them.
            "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": (
                f"{PACKAGE}.OAuthBearerLoginModule required;"
            ),
            "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class": (
                f"{PACKAGE}.OAuthBearerValidatorCallbackHandler"
            ),
        },
    )
    with made.broker:
        for future in made.admin.create_topics([NewTopic("t", 1, 1)]).values():
            future.result(SECONDS)
        made.allow(ResourceType.TOPIC, "t", AclOperation.DESCRIBE)
        yield made


@pytest.fixture(scope="module")
def tools(issued: Guarded) -> Iterator[KafkaTools]:
    """In a JVM that may read tokens from files."""
    with pytest.MonkeyPatch.context() as patch:
        allowed = f"file://{issued.authority.directory}/token.jwt"
        patch.setenv(
            "JAVA_TOOL_OPTIONS",
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={allowed}"
            f" -Dorg.apache.kafka.sasl.oauthbearer.allowed.files={issued.authority.directory}/token.jwt",
        )
        with KafkaTools("4.3.1") as running:
            yield running


List = Callable[..., str]


@pytest.fixture
def list_topics(issued: Guarded, tools: KafkaTools) -> List:
    def list_topics(options: str = "", *, fails: bool = False, **more: str) -> str:
        properties = issued.authority.directory / "client.properties"
        write_properties(
            properties,
            {
                "security.protocol": "SASL_SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(issued.authority.trust_store),
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": f"{PACKAGE}.OAuthBearerLoginModule required {options};",
                **{name.replace("_", "."): value for name, value in more.items()},
            },
        )
        result = tools.run(
            "topics",
            *("--bootstrap-server", f"127.0.0.1:{issued.port}", "--list"),
            *("--command-config", str(properties)),
        )
        assert (result.status != 0) == fails, result.output + result.errors
        return result.output + result.errors if fails else result.output

    return list_topics


def with_file(issued: Guarded, text: str) -> dict[str, str]:
    file = issued.authority.directory / "token.jwt"
    file.write_text(text)
    return {
        "sasl_login_callback_handler_class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
        "sasl_oauthbearer_token_endpoint_url": file.as_uri(),
        "sasl_oauthbearer_jwt_retriever_class": f"{PACKAGE}.FileJwtRetriever",
    }


def test_java_logs_in_with_a_token(issued: Guarded, list_topics: List) -> None:
    assert list_topics(**with_file(issued, token())).split() == ["t"]
    assert list_topics(**with_file(issued, token(sub="bob"))).split() == []


def test_java_is_told_that_a_token_is_not_good(issued: Guarded, list_topics: List) -> None:
    refused = list_topics(fails=True, **with_file(issued, token(key=FOREIGN_KEY)))
    assert "SaslAuthenticationException" in refused
    assert '{"status":"invalid_token"}' in refused


def test_tokens_that_nobody_has_signed_are_refused(issued: Guarded, list_topics: List) -> None:
    """Kafka's client makes them by itself, for tests."""
    refused = list_topics('unsecuredLoginStringClaim_sub="alice"', fails=True)
    assert "SaslAuthenticationException" in refused
    log = issued.broker.output.read_text()
    assert "it is not signed by an algorithm that is accepted" in log
