"""What the chart makes: one broker at a time, racks, ids, secrets, and what it refuses."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.chart import (
    EXAMPLES,
    FOLDER,
    HELM,
    KUBERNETES,
    NO_HELM,
    Manifest,
    NotRendered,
    of_kind,
    properties,
    render,
)

pytestmark = pytest.mark.skipif(HELM is None, reason=NO_HELM)


def pod(manifest: Manifest) -> dict[str, Any]:
    made: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return made


def container(manifest: Manifest) -> dict[str, Any]:
    (made,) = pod(manifest)["containers"]
    assert isinstance(made, dict)
    return made


@pytest.mark.parametrize("example", EXAMPLES)
def test_helm_finds_nothing_wrong(example: str) -> None:
    values = FOLDER / "examples" / f"{example}.yaml"
    command = ["helm", "lint", str(FOLDER / "headrace"), "--strict", "--values", str(values)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(
    find_spec("kubernetes_validate") is None,
    reason="kubernetes-validate is not installed (uv sync --group deploy)",
)
@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("example", EXAMPLES)
def test_manifests_are_what_the_schemas_say(example: str, version: str) -> None:
    import kubernetes_validate

    foreign = {"PodMonitor", "PrometheusRule"}
    for manifest in render(example, version=version):
        if manifest["kind"] not in foreign:
            kubernetes_validate.validate(manifest, version.rpartition(".")[0], strict=True)


def test_the_id_of_a_broker_is_the_ordinal_of_its_pod() -> None:
    for group in of_kind(render("zones"), "StatefulSet"):
        assert "--override=broker.id=$(BROKER_ID)" in container(group)["args"]
        (ordinal,) = [each for each in container(group)["env"] if each["name"] == "BROKER_ID"]
        assert "apps.kubernetes.io/pod-index" in ordinal["valueFrom"]["fieldRef"]["fieldPath"]
    assert [group["spec"]["ordinals"]["start"] for group in of_kind(render("zones"), "StatefulSet")] == [
        100,
        200,
        300,
    ]


def test_a_zone_is_the_rack_of_its_brokers_and_they_run_nowhere_else() -> None:
    for group in of_kind(render("zones"), "StatefulSet"):
        zone = f"europe-west1-{group['metadata']['name'][-1]}"
        assert f"--override=broker.rack={zone}" in container(group)["args"]
        affinity = pod(group)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (term,) = affinity["nodeSelectorTerms"]
        assert term["matchExpressions"] == [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
        ]


def test_without_zones_a_node_is_a_rack() -> None:
    (group,) = of_kind(render("small"), "StatefulSet")
    assert "--override=broker.rack=$(NODE_NAME)" in container(group)["args"]
    assert "affinity" not in pod(group)


@pytest.mark.parametrize("example", EXAMPLES)
def test_one_broker_is_down_at_a_time(example: str) -> None:
    manifests = render(example)
    (budget,) = of_kind(manifests, "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1
    groups = of_kind(manifests, "StatefulSet")
    for group in groups:
        labels = group["spec"]["template"]["metadata"]["labels"]
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
        # Several would each restart one.
        assert (group["spec"]["updateStrategy"]["type"] == "RollingUpdate") is (len(groups) == 1)
        assert group["spec"]["podManagementPolicy"] == "Parallel"
        probed = container(group)["readinessProbe"]
        assert "/readyz" in str(probed)


def test_addresses_of_brokers_stay_while_they_are_not_ready() -> None:
    services = of_kind(render("zones"), "Service")
    assert [service["spec"]["publishNotReadyAddresses"] for service in services] == [True, True]


@pytest.mark.parametrize("example", EXAMPLES)
def test_pods_need_no_rights(example: str) -> None:
    for group in of_kind(render(example), "StatefulSet"):
        assert pod(group)["securityContext"]["runAsNonRoot"] is True
        assert pod(group)["automountServiceAccountToken"] is False
        assert container(group)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_a_changed_file_restarts_brokers_and_a_new_chart_alone_does_not() -> None:
    def template(*settings: str) -> Any:
        (group,) = of_kind(render("small", *settings), "StatefulSet")
        return group["spec"]["template"]

    assert template() == template("podLabels=null")
    assert template() != template(r"config.log\.retention\.hours=3")
    assert "helm.sh/chart" not in str(template())


def test_passwords_in_the_file_are_in_a_secret() -> None:
    manifests = render("small", r"config.ssl\.keystore\.password=very-secret")
    holders = [manifest["kind"] for manifest in manifests if "very-secret" in yaml.safe_dump(manifest)]
    assert holders == ["Secret"]


def test_the_rules_come_along_with_the_address_of_the_runbooks() -> None:
    (rule,) = of_kind(render("zones"), "PrometheusRule")
    file = (FOLDER.parent / "prometheus/headrace.rules.yml").read_text()
    assert rule["spec"] == yaml.safe_load(file.replace("docs/runbooks.md", "https://wiki.example/headrace"))


def test_the_job_has_a_name_that_the_rules_select() -> None:
    (monitor,) = of_kind(render("zones"), "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["relabelings"][0] == {
        "targetLabel": "job",
        "replacement": "headrace/data/orders-headrace",
    }
    assert endpoint["scheme"] == "https"


@pytest.mark.parametrize(
    ("example", "setting", "said"),
    [
        ("small", "zookeeper.connect=", "zookeeper/connect"),
        ("small", "zookeper.connect=zk:2181", "zookeper"),
        ("small", "tls.enabled=true", "tls.enabled needs tls.secret"),
        ("small", "metrics.tokenSecret=tokens", "metrics.tokenSecret needs tls.enabled"),
        ("zones", "metrics.tokenSecret=", "Prometheus has to say who it is"),
        ("small", "zookeeper.setAcl=true", "zookeeper.setAcl needs zookeeper.tls.secret"),
        ("small", r"config.broker\.id=7", "the chart sets broker.id itself"),
        ("zones", "groups[1].firstBrokerId=101", "both have a broker 101"),
        ("zones", "groups[1].name=a", "a is there twice"),
    ],
)
def test_what_cannot_work_is_refused(example: str, setting: str, said: str) -> None:
    # --set of one element replaces the list, so the whole list is given.
    others = _TWO_GROUPS if setting.startswith("groups[1]") else ()
    with pytest.raises(NotRendered, match=said):
        render(example, *others, setting)


_TWO_GROUPS = [
    f"groups[{i}].{name}={value}"
    for i, group in enumerate(("a", "b"))
    for name, value in (("name", group), ("replicas", 2), ("firstBrokerId", 100 * (i + 1)))
]


def test_files_are_where_pods_mount_them() -> None:
    manifests = render("zones")
    mounts = {each["mountPath"] for each in container(of_kind(manifests, "StatefulSet")[0])["volumeMounts"]}
    named = {value for value in properties(manifests).values() if value.startswith("/")}
    assert named
    assert {value for value in named if not any(value.startswith(f"{mount}/") for mount in mounts)} == set()


KUBECTL = """#!/bin/sh
# Three pods. A deleted one is gone for one look, comes back, and is ready.
echo "$*" >> {log}
case "$*" in
  *"get pods"*) printf 'b-1\\nb-2\\nb-3\\n' ;;
  *"get pod "*)
    cat {folder}/$5 2> /dev/null
    if [ -e {folder}/$5.next ]; then mv {folder}/$5.next {folder}/$5; fi ;;
  *"delete pod"*) rm {folder}/$5; echo "new-$5" > {folder}/$5.next ;;
  *"wait pod"*) [ ! -e {folder}/unready ] ;;
esac
"""


def _roll(folder: Path) -> tuple[int, list[str]]:
    log = folder / "calls"
    kubectl = folder / "kubectl"
    kubectl.write_text(KUBECTL.format(log=log, folder=folder))
    kubectl.chmod(0o755)
    for name in ("b-1", "b-2", "b-3"):
        (folder / name).write_text(f"old-{name}")
    done = subprocess.run(
        [str(FOLDER / "roll.sh"), "data", "orders"],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        timeout=60,
        capture_output=True,
    )
    return done.returncode, [" ".join(line.split()[2:5]) for line in log.read_text().splitlines()]


def test_a_roll_restarts_one_after_the_other_and_waits_for_all(tmp_path: Path) -> None:
    status, calls = _roll(tmp_path)
    assert status == 0
    told = [call for call in calls if call.startswith(("delete", "wait"))]
    assert told == [
        "wait pod --selector",
        *(line for i in (1, 2, 3) for line in (f"delete pod b-{i}", "wait pod --selector")),
    ]
    # Each is asked for until it is another one: before, while it is gone, and when it is back.
    assert [call for call in calls if call == "get pod b-2"] == ["get pod b-2"] * 3


def test_a_roll_does_not_begin_while_a_broker_is_not_in_sync(tmp_path: Path) -> None:
    (tmp_path / "unready").touch()
    status, calls = _roll(tmp_path)
    assert status != 0
    assert not [call for call in calls if call.startswith("delete")]
