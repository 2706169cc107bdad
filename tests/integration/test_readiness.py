"""A broker that came back is ready when its replicas are in sync again, and not before."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from tests.broker_process import BrokerProcess
from tests.cluster_process import HeadraceCluster, eventually
from tests.ports import own_port

SECONDS = 60.0
_THROTTLE = "leader.replication.throttled.rate"

pytestmark = pytest.mark.timeout(240)


class Probed(HeadraceCluster):
    """Two brokers that serve their metrics."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, 2, {"default.replication.factor": "2"})
        self._ports: list[int] = []
        self.adapt = self._serve_metrics

    def _serve_metrics(self, broker: BrokerProcess) -> None:
        self._ports.append(own_port())
        broker.properties["headrace.metrics.listener"] = f"127.0.0.1:{self._ports[-1]}"

    def ready(self, broker_id: int) -> tuple[int, str]:
        address = f"http://127.0.0.1:{self._ports[broker_id - 1]}/readyz"
        try:
            with urllib.request.urlopen(address, timeout=30) as told:
                return told.status, told.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except urllib.error.URLError:
            return 0, "nobody listens"

    def command(self, *args: str, text: str | None = None) -> Result:
        done = CliRunner().invoke(
            cli, args, input=text, env={"HEADRACE_BOOTSTRAP": self.bootstrap}, prog_name="headrace"
        )
        assert done.exit_code == 0, done.output
        return done


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Probed]:
    with Probed(tmp_path) as cluster:
        cluster.create_topic("t", [[1, 2]])
        yield cluster


def test_a_broker_that_lags_is_not_ready_and_the_others_are(cluster: Probed) -> None:
    eventually(lambda: cluster.ready(2) == (200, "ok\n"), SECONDS, "it is ready")
    # A megabyte in ten seconds, so that it takes minutes to catch up.
    cluster.command("config", "set", "--topic", "t", "leader.replication.throttled.replicas=*")
    cluster.command("config", "set", "--broker", "1", f"{_THROTTLE}=1")
    cluster.brokers[2].stop()
    cluster.command("produce", "t", text=f"{'x' * 500_000}\n" * 40)
    cluster.brokers[2].start()
    # Its metrics come a moment after its listener for clients.
    eventually(lambda: cluster.ready(2)[0] != 0, SECONDS, "it tells how it is")

    assert cluster.ready(2) == (503, "replicas out of sync: 1 (t-0)\n")
    assert cluster.ready(1) == (200, "ok\n")
    cluster.command("config", "unset", "--broker", "1", _THROTTLE)
    eventually(lambda: cluster.ready(2) == (200, "ok\n"), SECONDS, "it has caught up")
