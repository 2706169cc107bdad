"""The alerts name what brokers export, have a test each, and lead to a runbook."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.unit.deploy.exported import SCRAPED, exported
from tests.unit.deploy.promql import series, unknown

_ROOT: Final = Path(__file__).parents[3]
_FOLDER: Final = _ROOT / "deploy/prometheus"
_JOB: Final = 'job=~".*headrace.*"'
_RULES: Final[list[dict[str, Any]]] = [
    rule
    for group in yaml.safe_load((_FOLDER / "headrace.rules.yml").read_text())["groups"]
    for rule in group["rules"]
]
_TESTS: Final = sorted(_FOLDER.glob("*.tests.yml"))


@pytest.mark.parametrize("rule", _RULES, ids=lambda rule: rule["alert"])
def test_an_alert_names_what_brokers_export(rule: dict[str, Any]) -> None:
    assert unknown(rule["expr"], _JOB) == []


@pytest.mark.parametrize("rule", _RULES, ids=lambda rule: rule["alert"])
def test_a_sentence_of_an_alert_names_labels_that_it_has(rule: dict[str, Any]) -> None:
    kept = re.search(r"^(?:sum|max|min|histogram_quantile)\b.*? by \(([^)]*)\)", rule["expr"])
    sentences = " ".join(rule["annotations"].values())
    used = set(re.findall(r"\$labels\.(\w+)", sentences))
    if kept:
        has = frozenset(label.strip() for label in kept.group(1).split(",")) - {"le"}
    else:
        has = SCRAPED.union(*(exported()[name] for name in series(rule["expr"])))
    assert used <= has


@pytest.mark.parametrize("rule", _RULES, ids=lambda rule: rule["alert"])
def test_an_alert_has_a_severity_and_a_runbook(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    sections = re.findall(r"^## (\w+)$", (_ROOT / page).read_text(), re.MULTILINE)
    assert anchor in {section.lower() for section in sections}


def test_names_are_told_once() -> None:
    names = [rule["alert"] for rule in _RULES]
    assert sorted(set(names)) == sorted(names)


def test_every_alert_fires_in_a_test_and_is_silent_in_one() -> None:
    fires, silent = set(), set()
    for file in _TESTS:
        for case in yaml.safe_load(file.read_text())["tests"]:
            subject = case["name"].split()[0]
            for look in case["promql_expr_test"]:
                assert look["expr"] == 'count by (alertname) (ALERTS{alertstate="firing"})'
                told = {re.sub(r'.*"(\w+)".*', r"\1", each["labels"]) for each in look["exp_samples"]}
                fires |= told
                if subject not in told:
                    silent.add(subject)
    names = {rule["alert"] for rule in _RULES}
    assert fires == names
    assert silent == names


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (prometheus has it)")
@pytest.mark.parametrize("file", _TESTS, ids=lambda file: file.name)
def test_promtool_agrees(file: Path) -> None:
    rules = subprocess.run(["promtool", "check", "rules", str(_FOLDER / "headrace.rules.yml")], timeout=60)
    assert rules.returncode == 0
    assert subprocess.run(["promtool", "test", "rules", str(file)], timeout=120).returncode == 0


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (f"kafka_log_log_size{{{_JOB}}}", 0),
        (f"sum by (topic) (kafka_log_log_size{{{_JOB}}})", 0),
        (f"kafka_log_log_sizes{{{_JOB}}}", 1),
        ("kafka_log_log_size{}", 1),
        ("kafka_log_log_size", 1),
        (f'kafka_log_log_size{{{_JOB}, disk="a"}}', 1),
        (f"sum by (disk) (kafka_log_log_size{{{_JOB}}})", 1),
        (f"headrace_event_loop_lag_seconds{{{_JOB}}}", 1),
    ],
)
def test_what_is_not_exported_is_noticed(expression: str, told: int) -> None:
    assert len(unknown(expression, _JOB)) == told
