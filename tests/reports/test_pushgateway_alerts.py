# SPDX-License-Identifier: Apache-2.0
"""Rules, alerts and the scrape configuration of docs/operate/metrics, checked by Prometheus' own tool."""

from __future__ import annotations

import copy
import functools
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.lab import run

METRICS = Path(__file__).resolve().parents[2] / "docs" / "operate" / "metrics"

Json = dict[str, Any]


@functools.cache
def load(name: str) -> Json:
    found: Json = YAML(typ="safe").load((METRICS / name).read_text())
    return found


def promtool(*arguments: str, folder: Path = METRICS) -> subprocess.CompletedProcess[str]:
    return run(["promtool", *arguments], folder, timeout_s=120)


def names_in(name: str, pattern: str) -> set[str]:
    """Return what a file names, wherever it stands."""
    return set(re.findall(pattern, (METRICS / name).read_text()))


ALERT_TESTS = ("alerts_test.yaml", "alerts_days_test.yaml")
ALERT = r"\b(?:alert|alertname): (\w+)"
ALERTS = sorted(names_in("alerts.yaml", ALERT))
RECORDS = sorted(rule["record"] for group in load("rules.yaml")["groups"] for rule in group["rules"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "--lint=all", "--lint-fatal", "prometheus.yaml"),
        ("check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml", "rules.yaml"),
        ("test", "rules", *ALERT_TESTS, "rules_test.yaml"),
    ],
    ids=" ".join,
)
def test_promtool_accepts(arguments: tuple[str, ...]) -> None:
    """Configuration and rules are valid, and every alert fires where it must and only there."""
    done = promtool(*arguments)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("SUCCESS") >= sum(word.endswith(".yaml") for word in arguments), done.stdout


def test_every_alert_is_tested_and_documented() -> None:
    """An alert without a test or without a word on what to do is none."""
    assert ALERTS
    assert sorted(alert for name in ALERT_TESTS for alert in names_in(name, ALERT)) == ALERTS
    documented = re.findall(r"^\| `(Hil\w+)` \|", (METRICS.parent / "metrics.md").read_text(), re.MULTILINE)
    assert documented
    assert set(documented) == set(ALERTS)
    assert len(documented) == len(ALERTS)


def test_every_alert_is_seen_firing_and_silent() -> None:
    """The tests hold each alert in both states: a moment, or a series, at which it must not fire."""
    tests = [test for name in ALERT_TESTS for test in load(name)["tests"]]
    for alert in ALERTS:
        about = [
            (test, case) for test in tests for case in test["alert_rule_test"] if case["alertname"] == alert
        ]
        assert any(case["exp_alerts"] for _, case in about), alert
        silent = any(not case["exp_alerts"] for _, case in about)
        spared = any(len(test["input_series"]) > len(case["exp_alerts"]) for test, case in about)
        assert silent or spared, alert


def never(rule: Json) -> None:
    rule["expr"] = "vector(0) > 1"


def turned(rule: Json) -> None:
    """Turn every comparison of the expression: what fired is silent, and the other way round."""
    opposites = {">=": "<", "==": "!=", "!=": "==", ">": "<=", "<": ">="}
    rule["expr"] = re.sub(r">=|==|!=|[<>](?!=)", lambda found: opposites[found[0]], rule["expr"])


def of_every_job(rule: Json) -> None:
    rule["expr"] = rule["expr"].replace('job="hil_nightly"', 'job=~"hil_.+"')


def at_once(rule: Json) -> None:
    rule.pop("for")


def without_a_minimum(rule: Json) -> None:
    rule["expr"] = rule["expr"].partition(" and ")[0]


def mutants() -> Iterator[tuple[str, Json, Json]]:
    """Return each spoilt alert's name, its rules and the tests that must fail with them."""
    for rule in (rule for group in load("alerts.yaml")["groups"] for rule in group["rules"]):
        for mutation in (never, turned, of_every_job, at_once, without_a_minimum):
            changed = copy.deepcopy(rule)
            if mutation is not at_once or "for" in rule:
                mutation(changed)
            if changed != rule:
                rules = {"groups": [{"name": "hil", "rules": [changed]}]}
                yield f"{rule['alert']}-{mutation.__name__}", rules, asking_for(rule["alert"])


def asking_for(alert: str) -> Json:
    """Return the tests that ask for an alert, and no other question."""
    (whole,) = (load(name) for name in ALERT_TESTS if alert in names_in(name, ALERT))
    kept = []
    for test in whole["tests"]:
        asked = [case for case in test["alert_rule_test"] if case["alertname"] == alert]
        kept += [{**test, "alert_rule_test": asked}] if asked else []
    return {**whole, "tests": kept}


def without_each_record() -> Iterator[tuple[str, Json, Json]]:
    """Return each recording rule's name, the rules without it and the tests that must fail with them."""
    for record in RECORDS:
        rules = copy.deepcopy(load("rules.yaml"))
        for group in rules["groups"]:
            group["rules"] = [rule for rule in group["rules"] if rule["record"] != record]
        yield record, rules, load("rules_test.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", [mutants, without_each_record])
def test_a_spoilt_rule_fails_its_test(
    tmp_path: Path, spoilt: Callable[[], Iterator[tuple[str, Json, Json]]]
) -> None:
    """An alert that is neutralised, turned, blind to the job, in haste or without its minimum, and a
    recording rule that is gone: the rule's own tests notice each.
    """
    tests = {}
    for number, (name, rules, asking) in enumerate(spoilt()):
        (tmp_path / f"rules{number}.yaml").write_text(json.dumps(rules))  # which is YAML, too
        own = {**asking, "rule_files": [f"rules{number}.yaml"]}
        (tmp_path / f"test{number}.yaml").write_text(json.dumps(own, default=str))
        tests[f"test{number}.yaml"] = name
    said = promtool("test", "rules", *tests, folder=tmp_path).stdout
    parts = (part.partition("\n") for part in said.split("Unit Testing:"))
    told = {file.strip(): words for file, _, words in parts}
    assert tests.keys() <= told.keys(), said
    for file, name in tests.items():
        assert "FAILED" in told[file], name
        assert name.partition("-")[0] in told[file], name


def test_every_recording_rule_is_documented() -> None:
    """Who writes a query finds what is counted already."""
    text = (METRICS.parent / "metrics.md").read_text()
    assert not [record for record in RECORDS if f"`{record}`" not in text]


def test_the_scrape_configuration_keeps_pushed_jobs() -> None:
    """honor_labels stands where the gateway is scraped; without it every run would be of job pushgateway."""
    (job,) = load("prometheus.yaml")["scrape_configs"]
    assert (job["job_name"], job["honor_labels"]) == ("pushgateway", True)
