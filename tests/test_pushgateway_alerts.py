"""The alert rules and the scrape configuration of docs/metrics, checked by Prometheus' own tool."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

METRICS = Path(__file__).resolve().parent.parent / "docs" / "metrics"


def promtool(*arguments: str) -> str:
    done = subprocess.run(
        ["promtool", *arguments],
        cwd=METRICS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def alerts_in(name: str) -> set[str]:
    """Return every alert's name in a file, wherever it stands."""
    return set(re.findall(r"\b(?:alert|alertname): (\w+)", (METRICS / name).read_text()))


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "prometheus.yaml"),
        ("check", "rules", "alerts.yaml"),
        ("test", "rules", "alerts_test.yaml"),
    ],
    ids=" ".join,
)
def test_promtool_accepts(arguments: tuple[str, ...]) -> None:
    """Configuration and rules are valid, and every alert fires where it must and only there."""
    assert "SUCCESS" in promtool(*arguments)


def test_every_alert_is_tested_and_documented() -> None:
    """An alert without a test or without a word on what to do is none."""
    alerts = alerts_in("alerts.yaml")
    assert len(alerts) == 6
    assert alerts == alerts_in("alerts_test.yaml")
    documented = re.findall(r"^\| `(Hil\w+)` \|", (METRICS.parent / "metrics.md").read_text(), re.MULTILINE)
    assert set(documented) == alerts


def test_the_scrape_configuration_keeps_pushed_jobs() -> None:
    """honor_labels stands where the gateway is scraped; without it every run would be of job pushgateway."""
    (job,) = YAML(typ="safe").load((METRICS / "prometheus.yaml").read_text())["scrape_configs"]
    assert (job["job_name"], job["honor_labels"]) == ("pushgateway", True)
