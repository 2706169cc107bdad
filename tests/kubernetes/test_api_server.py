"""A real API server takes what the chart makes, and a namespace with the strictest rules its pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kubernetes.api_server import MISSING, ApiServer, Refused, api_server
from tests.kubernetes.chart import EXAMPLES, HELM, NO_HELM, Manifest, of_kind, render

FOREIGN = ("PodMonitor", "PrometheusRule")
"""Kinds of the Prometheus operator: the server does not know them."""

pytestmark = [
    pytest.mark.skipif(HELM is None, reason=NO_HELM),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (`poe kubernetes`)"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with api_server(tmp_path_factory.mktemp("kubernetes")) as server:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "data", "labels": labels},
        }
        server.ask("POST", "api/v1/namespaces", namespace)
        yield server


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_manifest_is_taken(server: ApiServer, example: str) -> None:
    taken = [server.apply(each, "data") for each in render(example) if each["kind"] not in FOREIGN]
    kinds = {each["kind"] for each in taken}
    assert kinds == {"PodDisruptionBudget", "Secret", "Service", "ServiceAccount", "StatefulSet"}


def _first_pod(group: Manifest) -> Manifest:
    """As the controller of StatefulSets makes it."""
    template: Any = group["spec"]["template"]
    claimed = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": f"{group['metadata']['name']}-100"},
        "spec": {**template["spec"], "volumes": [*template["spec"]["volumes"], claimed]},
    }


@pytest.mark.parametrize("example", EXAMPLES)
def test_pods_keep_the_strictest_rules(server: ApiServer, example: str) -> None:
    for group in of_kind(render(example), "StatefulSet"):
        server.create_dry(_first_pod(group), "data")


def test_what_is_wrong_is_refused(server: ApiServer) -> None:
    (group,) = of_kind(render("small"), "StatefulSet")
    pod = _first_pod(group)
    pod["spec"]["securityContext"] = {}
    with pytest.raises(Refused, match="violates PodSecurity"):
        server.create_dry(pod, "data")
    group["spec"]["ordinal"] = {"start": 1}
    with pytest.raises(Refused, match="ordinal"):
        server.apply(group, "data")
