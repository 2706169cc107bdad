"""A broker starts with the file and arguments that the chart makes, and the pod's probes tell how it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing.zookeeper import ZooKeeper
from tests.cluster_process import eventually
from tests.kubernetes.chart import HELM, NO_HELM, Manifest, of_kind, render
from tests.ports import own_port
from tests.zookeeper_server import zookeeper_at

SECONDS = 60.0
STOP_SECONDS = 60.0
pytestmark = [pytest.mark.skipif(HELM is None, reason=NO_HELM), pytest.mark.timeout(240)]


class Pod:
    """What a node would do with the first pod of the first group, on this machine."""

    def __init__(self, folder: Path, zookeeper: str) -> None:
        self._folder = folder
        self._metrics = str(own_port())
        self._ports = {"9093": str(own_port()), "9094": str(own_port()), "9404": self._metrics}
        manifests = render("zones", "zookeeper.tls.secret=", "zookeeper.setAcl=false")
        self._group = of_kind(manifests, "StatefulSet")[0]
        self._lay_out(manifests)
        variables = {
            "BROKER_ID": str(self._group["spec"]["ordinals"]["start"]),
            "POD_NAME": "localhost",
            "POD_NAMESPACE": "data",
            "NODE_NAME": "node",
        }
        self.arguments = []
        for argument in self._container["args"]:
            for name, value in variables.items():
                argument = argument.replace(f"$({name})", value)
            self.arguments.append(self._here(argument))
        # Nobody resolves the names of pods here.
        self.arguments.append(
            "--override=advertised.listeners="
            f"BROKERS://127.0.0.1:{self._ports['9093']},CLIENTS://127.0.0.1:{self._ports['9094']}"
        )
        self.arguments += [f"--override=zookeeper.connect={zookeeper}", "--override=min.insync.replicas=1"]

    @property
    def _container(self) -> Manifest:
        (container,) = self._group["spec"]["template"]["spec"]["containers"]
        assert isinstance(container, dict)
        return container

    def _here(self, text: str) -> str:
        """The paths of a pod and its ports, on this machine."""
        for path in ("/etc/headrace", "/var/lib/headrace"):
            text = text.replace(path, f"{self._folder}{path}")
        for port, own in self._ports.items():
            text = text.replace(f":{port}", f":{own}")
        return text.replace("0.0.0.0", "127.0.0.1")

    def _lay_out(self, manifests: list[Manifest]) -> None:
        """The Secrets: of the chart, of cert-manager, of whoever lets Prometheus in."""
        mounted = self._folder / "etc/headrace"
        for name in ("config", "tls", "metrics", "../../var/lib/headrace"):
            (mounted / name).mkdir(parents=True)
        for name, text in of_kind(manifests, "Secret")[0]["stringData"].items():
            (mounted / "config" / name).write_text(self._here(text))
        (mounted / "metrics/tokens").write_text("prometheus=a-token-of-the-scraper-4711\n")
        made = self._folder / "made"
        done = CliRunner().invoke(
            cli, ["cert", "create", "brokers", "--host", "127.0.0.1", "--dir", str(made)]
        )
        assert done.exit_code == 0, done.output
        shutil.copy(made / "brokers-keystore.pem", mounted / "tls/tls-combined.pem")
        shutil.copy(made / "ca.pem", mounted / "tls/ca.crt")

    def probe(self, kind: str) -> tuple[int, str]:
        python, *words = self._container[kind]["exec"]["command"]
        assert python == "python"
        command = [sys.executable, *map(self._here, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout or done.stderr


@contextmanager
def running(pod: Pod, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", *pod.arguments], stdout=log, stderr=log, env=dict(os.environ)
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    ensemble = zookeeper_at(tmp_path / "zookeeper")
    ensemble.start()
    yield ensemble
    ensemble.stop()


def test_a_broker_of_the_chart_starts_and_its_probes_see_it(tmp_path: Path, zookeeper: ZooKeeper) -> None:
    pod = Pod(tmp_path / "pod", zookeeper.connect)
    output = tmp_path / "output"
    with running(pod, output) as process:

        def is_well(kind: str) -> bool:
            assert process.poll() is None, output.read_text()
            return pod.probe(kind) == (0, "ok\n")

        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            eventually(partial(is_well, kind), SECONDS, f"{kind} succeeds")
        (node,) = zookeeper.nodes
        node.pause()
        try:
            status, said = pod.probe("readinessProbe")
            assert status == 1
            assert "do not restart" in said
        finally:
            node.resume()
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0
    assert pod.probe("livenessProbe")[0] == 1
    assert (tmp_path / "pod/var/lib/headrace/data/.kafka_cleanshutdown").exists()
