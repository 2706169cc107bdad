"""A registry over a secured cluster: TLS, nobody without a name, and the brokers' rights on topics."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from headrace.client.client_files import ClientFiles
from headrace.client.security import ClientSecurity
from headrace.registry.http.app import ROUTES
from headrace.spark.decoding.formats import Decoding, Format
from headrace.spark.decoding.registry_client import RegistryClient, RegistryRefused, RegistryUnreachable
from headrace.testing.cluster import Cluster
from tests.registry.registry_process import RegistryProcess
from tests.unit.cli.serving import Run, runner

_TOKEN = "a-token-of-the-catalogue-4711"
_GET, _POST, _PUT, _DELETE = "GET", "POST", "PUT", "DELETE"
_OF_THE_REGISTRY = {
    ("--topic", "_schemas"): ("read", "write", "create", "describe_configs"),
    ("--transactional-id", "headrace-registry-_schemas"): ("write",),
    ("--cluster",): ("describe", "describe_configs"),
}
"""The rights that docs/pipeline/registry.md names."""
_INT, _LONG = {"schema": '"int"'}, {"schema": '"long"'}


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Guarded:
    """The registry, and the headers of those who ask it."""

    def __init__(self, cluster: Cluster, process: RegistryProcess, users: dict[str, str]) -> None:
        self.cluster = cluster
        self.process = process
        self.users = users
        self.certificates = Path(cluster.directory) / "certs"

    def ask(
        self,
        method: str,
        path: str,
        header: str | None = None,
        body: object = None,
        certificate: str | None = None,
    ) -> tuple[int, Any]:
        """-1 for a 401 that does not say how to authenticate."""
        context = ssl.create_default_context(cafile=str(self.certificates / "ca.pem"))
        if certificate is not None:
            context.load_cert_chain(str(self.certificates / f"{certificate}-keystore.pem"))
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.process.url + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        if header is not None:
            request.add_header("Authorization", header)
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as found:
                return found.status, json.loads(found.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                has_challenge = "Basic" in error.headers.get("WWW-Authenticate", "")
                return error.code if has_challenge == (error.code == 401) else -1, json.loads(
                    error.read() or b"null"
                )

    def as_user(self, user: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        return self.ask(method, path, basic(user, self.users[user]), body)


def _password(files: ClientFiles) -> str:
    credentials = ClientSecurity.read(str(files.java)).credentials
    assert credentials is not None
    return credentials.password.reveal()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """alice consumes orders and bob produces it; of the topic salaries both know nothing."""
    directory = tmp_path_factory.mktemp("guarded")
    tokens = directory / "tokens"
    tokens.write_text(f"catalogue={_TOKEN}\n")
    with Cluster(secure=True) as cluster:
        admin = ("--command-config", str(cluster.client_files.java))
        run: Run = runner(cluster.bootstrap)
        users = {"admin": _password(cluster.client_files)}
        for user in ("alice", "bob"):
            file = directory / f"{user}.properties"
            run("user", "create", user, "--client-config", str(file), *admin)
            users[user] = _password(ClientFiles.beside(file))
        run("acl", "grant", "alice", "consume", "orders", "--group", "readers", *admin)
        run("acl", "grant", "bob", "produce", "orders", *admin)
        own = directory / "registry.properties"
        run("user", "create", "registry", "--client-config", str(own), *admin)
        users["registry"] = _password(ClientFiles.beside(own))
        for where, operations in _OF_THE_REGISTRY.items():
            asked = (each for operation in operations for each in ("--operation", operation))
            run("acl", "add", "--allow-principal", "User:registry", *asked, *where, *admin)
        certificates = Path(cluster.directory) / "certs"
        http = directory / "http.properties"
        http.write_text(
            f"ssl.keystore.type=PEM\nssl.keystore.location={certificates / 'broker-1-keystore.pem'}\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={certificates / 'ca.pem'}\n"
        )
        more = [
            *("--listen", "https://127.0.0.1:0", "--authentication", "basic,bearer,mtls"),
            *("--token-file", str(tokens), "--http-config", str(http)),
            *("--command-config", str(own)),
        ]
        with RegistryProcess(directory / "registry", cluster.bootstrap, more=more) as process:
            found = Guarded(cluster, process, users)
            for subject in ("orders-value", "orders-key", "salaries-value"):
                schema = {
                    "schema": json.dumps({"type": "enum", "name": subject[:6], "symbols": [subject[-3:]]})
                }
                status, _ = found.as_user("admin", _POST, f"/subjects/{subject}/versions", schema)
                assert status == 200
            yield found


def test_no_route_answers_without_a_header(guarded: Guarded) -> None:
    walked = 0
    for route in ROUTES:
        path = (
            route.path.format(subject="orders-value", version="1", id="1", guid="x")
            if "{" in route.path
            else route.path
        )
        for method in sorted(route.methods or ()):
            body = _INT if method in (_POST, _PUT) else None
            assert guarded.ask(method, path, None, body)[0] == 401, (method, path)
            walked += 1
    assert walked > 30
    for method in (_GET, _POST, _PUT, _DELETE, "OPTIONS"):
        assert guarded.ask(method, "/not/a/route")[0] == 401
    for header in (basic("alice", "wrong"), basic("nobody", "x"), "Bearer no-such-token-0000", "Basic ???"):
        assert guarded.ask(_GET, "/subjects", header)[0] == 401
    assert guarded.as_user("admin", _GET, "/not/a/route")[0] == 404


def test_whoever_may_read_the_topic_may_read_its_subjects(guarded: Guarded) -> None:
    for user in ("alice", "bob"):
        assert guarded.as_user(user, _GET, "/subjects") == (200, ["orders-key", "orders-value"])
        status, shown = guarded.as_user(user, _GET, "/subjects/orders-value/versions/latest")
        assert status == 200
        assert guarded.as_user(user, _GET, f"/schemas/ids/{shown['id']}")[0] == 200
        assert guarded.as_user(user, _GET, f"/schemas/guids/{shown['guid']}")[0] == 200
        assert {each["subject"] for each in guarded.as_user(user, _GET, "/schemas")[1]} == {
            "orders-key",
            "orders-value",
        }


def test_what_belongs_to_another_topic_is_not_seen(guarded: Guarded) -> None:
    hidden = guarded.as_user("admin", _GET, "/subjects/salaries-value/versions/1")[1]
    for path in (
        "/subjects/salaries-value/versions",
        "/subjects/salaries-value/versions/1/schema",
        "/config/salaries-value",
        f"/schemas/ids/{hidden['id']}",
        f"/schemas/ids/{hidden['id']}/schema",
        f"/schemas/ids/{hidden['id']}/subjects",
        f"/schemas/guids/{hidden['guid']}",
    ):
        status, said = guarded.as_user("alice", _GET, path)
        assert (status, said["error_code"]) == (403, 40301), path
        assert "salaries" in path or "salaries" not in said["message"], "an id tells no name"
    assert guarded.as_user("alice", _POST, "/subjects/salaries-value", _INT)[0] == 403
    naming = {"schema": '"int"', "references": [{"name": "x", "subject": "salaries-value", "version": 1}]}
    assert guarded.as_user("bob", _POST, "/subjects/orders-value/versions", naming)[0] == 403


def test_writing_needs_write_and_deleting_needs_alter(guarded: Guarded) -> None:
    versions = "/subjects/orders-value/versions"
    assert guarded.as_user("alice", _POST, versions, _LONG) == (
        403,
        {"error_code": 40301, "message": "User:alice needs WRITE on topic orders"},
    )
    assert guarded.as_user("admin", _PUT, "/config/orders-value", {"compatibility": "NONE"})[0] == 200
    assert guarded.as_user("bob", _POST, versions, _LONG)[0] == 200
    for user in ("alice", "bob"):
        for method, path, body in (
            (_DELETE, f"{versions}/1", None),
            (_DELETE, "/subjects/orders-value", None),
            (_PUT, "/config/orders-value", {"compatibility": "FULL"}),
            (_PUT, "/mode/orders-value", {"mode": "READONLY"}),
            (_PUT, "/config", {"compatibility": "NONE"}),
            (_DELETE, "/mode", None),
        ):
            status, said = guarded.as_user(user, method, path, body)
            assert status == 403, (user, method, path)
            assert "ALTER" in said["message"]


def test_tokens_and_certificates_name_users_too(guarded: Guarded) -> None:
    assert guarded.ask(_GET, "/subjects", certificate="admin")[1] == [
        "orders-key",
        "orders-value",
        "salaries-value",
    ]
    assert guarded.ask(_GET, "/subjects", f"Bearer {_TOKEN}") == (200, [])
    status, said = guarded.ask(_GET, "/subjects/orders-value/versions", f"Bearer {_TOKEN}")
    assert (status, said["message"]) == (403, "User:catalogue needs READ or DESCRIBE on topic orders")


def test_the_lake_s_client_comes_with_a_password_and_its_own_authority(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = guarded.process.url.replace("https://", f"https://alice:{guarded.users['alice']}@")
    with pytest.raises(RegistryUnreachable, match="certificate verify failed"):
        RegistryClient(url, patience_s=0).versions("orders-value")
    monkeypatch.setenv("SSL_CERT_FILE", str(guarded.certificates / "ca.pem"))
    assert RegistryClient(url).versions("orders-value")[0] == 1
    with pytest.raises(RegistryRefused, match="needs READ or DESCRIBE on topic salaries"):
        RegistryClient(url).versions("salaries-value")
    assert guarded.users["alice"] not in repr(Decoding(Format.AVRO, registry=url, subject="orders-value"))


def test_confluent_s_client_comes_with_a_password(guarded: Guarded) -> None:
    config = {
        "url": guarded.process.url,
        "basic.auth.user.info": f"bob:{guarded.users['bob']}",
        "ssl.ca.location": str(guarded.certificates / "ca.pem"),
    }
    with SchemaRegistryClient(config) as client:
        assert client.get_subjects() == ["orders-key", "orders-value"]


def test_a_rule_that_is_new_counts_after_some_seconds(guarded: Guarded) -> None:
    run: Run = runner(guarded.cluster.bootstrap)
    admin = ("--command-config", str(guarded.cluster.client_files.java))
    rule = ("--allow-principal", "User:catalogue", "--operation", "describe", "--topic", "orders")
    run("acl", "add", *rule, *admin)
    deadline = time.monotonic() + 30
    while guarded.ask(_GET, "/subjects/orders-value/versions", f"Bearer {_TOKEN}")[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.5)


def test_nothing_secret_is_in_the_log(guarded: Guarded) -> None:
    said = guarded.process.errors()
    for secret in (*guarded.users.values(), _TOKEN):
        assert secret not in said
