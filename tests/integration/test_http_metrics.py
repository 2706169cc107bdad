"""Metrics of a secured broker: TLS, and nobody sees them without saying who they are."""

from __future__ import annotations

import base64
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.client.client_files import ClientFiles
from headrace.client.security import ClientSecurity
from headrace.core.errors import ConfigError
from headrace.testing.cluster import Cluster
from tests.unit.cli.serving import runner

_TOKEN = "a-token-of-the-scraper-4711"
_ROUTES = ("/metrics", "/", "/healthz", "/readyz", "/nothing", "/metrics?x=1")


class Metrics:
    def __init__(self, cluster: Cluster) -> None:
        assert cluster.metrics_url is not None
        self.cluster = cluster
        self.base = cluster.metrics_url.removesuffix("/metrics")
        self.certificates = Path(cluster.directory) / "certs"

    def ask(self, path: str, authorization: str | None = None, certificate: str | None = None) -> int:
        return self.answer(path, authorization, certificate)[0]

    def answer(
        self, path: str, authorization: str | None = None, certificate: str | None = None, method: str = "GET"
    ) -> tuple[int, str, str | None]:
        context = ssl.create_default_context(cafile=str(self.certificates / "ca.pem"))
        if certificate is not None:
            context.load_cert_chain(str(self.certificates / f"{certificate}-keystore.pem"))
        request = urllib.request.Request(self.base + path, method=method)
        if authorization is not None:
            request.add_header("Authorization", authorization)
        try:
            with urllib.request.urlopen(request, timeout=20, context=context) as found:
                return found.status, found.read().decode(), None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), error.headers["WWW-Authenticate"]


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metrics]:
    tokens = tmp_path_factory.mktemp("http") / "tokens"
    tokens.write_text(f"scraper={_TOKEN}\n")
    properties = {
        "headrace.metrics.listener": "https://127.0.0.1:0",
        "headrace.metrics.authentication": "basic,bearer,mtls",
        "headrace.metrics.token.file": str(tokens),
    }
    with Cluster(properties, secure=True) as cluster:
        yield Metrics(cluster)


def _password(files: ClientFiles) -> str:
    credentials = ClientSecurity.read(str(files.java)).credentials
    assert credentials is not None
    return credentials.password.reveal()


@pytest.mark.parametrize("path", _ROUTES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_no_route_answers_without_a_header(metrics: Metrics, path: str, method: str) -> None:
    status, _, challenge = metrics.answer(path, method=method)
    assert status == 401
    assert challenge is not None
    assert "Basic" in challenge
    assert "Bearer" in challenge


def test_the_administrator_sees_metrics_by_password_and_by_certificate(metrics: Metrics) -> None:
    right = basic("admin", _password(metrics.cluster.client_files))
    for _ in range(2):  # the second time from what is remembered
        status, body, _ = metrics.answer("/metrics", right)
        assert status == 200
        assert 'headrace_tls_certificate_expiry_seconds{listener="METRICS"}' in body
    (busy,) = re.findall(r"^headrace_event_loop_busy_seconds_total (\S+)", body, re.MULTILINE)
    assert float(busy) > 0, "the thread that answers is that of the loop"
    (idle,) = re.findall(r"^kafka_network_\w+avgidlepercent (\S+)", body, re.MULTILINE)
    assert 0 <= float(idle) <= 1
    assert metrics.ask("/nothing", right) == 404
    assert metrics.ask("/healthz", certificate="admin") == 200
    for wrong in (
        basic("admin", "wrong"),
        basic("nobody", "wrong"),
        "Basic zzz",
        "Bearer wrong-token-0123456789",
    ):
        assert metrics.ask("/metrics", wrong) == 401
    assert metrics.ask("/metrics", basic("admin", "wrong"), certificate="admin") == 401


def test_who_has_no_right_on_the_cluster_is_told_which(metrics: Metrics, tmp_path: Path) -> None:
    status, said, _ = metrics.answer("/metrics", f"Bearer {_TOKEN}")
    assert (status, said) == (403, "User:scraper needs DESCRIBE on the cluster\n")
    run = runner(metrics.cluster.bootstrap)
    admin = ("--command-config", str(metrics.cluster.client_files.java))
    run("acl", "add", "--allow-principal", "User:scraper", "--operation", "describe", "--cluster", *admin)
    assert metrics.ask("/metrics", f"Bearer {_TOKEN}") == 200
    run("user", "create", "carol", "--client-config", str(tmp_path / "carol.properties"), *admin)
    password = _password(ClientFiles.beside(tmp_path / "carol.properties"))
    assert metrics.ask("/metrics", basic("carol", password)) == 403
    run("user", "delete", "carol", *admin)
    assert metrics.ask("/metrics", basic("carol", password)) == 401


def test_plain_http_is_not_answered(metrics: Metrics) -> None:
    url = metrics.base.replace("https://", "http://") + "/metrics"
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=20)


def test_a_start_on_any_address_stops_with_what_to_set() -> None:
    cluster = Cluster({"headrace.metrics.listener": "0.0.0.0:0"})
    with pytest.raises(ConfigError, match=r"set headrace\.metrics\.authentication to basic, bearer or mtls"):
        cluster.start()
