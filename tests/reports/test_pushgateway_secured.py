# SPDX-License-Identifier: Apache-2.0
"""A Pushgateway as the docs set it up: TLS, user name and password, and a file that outlives it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import trustme
from ruamel.yaml import YAML

from hil.base.gateway_url import PASSWORD_VARIABLE, USER_VARIABLE
from hil.reports.pushgateway import push_run
from hil.store import read_judged_run
from tests.reports.metrics_rig import BOARDS, TIMEOUT_S, assert_says, healthy, only_own_credentials, store
from tests.reports.prometheus_rig import run_configured_prometheus, run_pushgateway

pytestmark = pytest.mark.slow

METRICS = Path(__file__).resolve().parents[2] / "docs" / "operate" / "metrics"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials and no proxy but those of the test."""
    only_own_credentials(monkeypatch)


@pytest.fixture
def web_config(tmp_path: Path) -> str:
    """The documented --web.config.file, and beside it the files that it and prometheus.yaml name."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(str(tmp_path / "pushgateway.key"))
    certificate.cert_chain_pems[0].write_to_path(str(tmp_path / "pushgateway.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "pushgateway-ca.pem"))
    (tmp_path / "pushgateway-password").write_text("sesame")
    return (METRICS / "pushgateway-web.yaml").read_text()


def test_passwords_and_certificates(tmp_path: Path, web_config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """User name and password come from the environment and show up in no sentence; nor is TLS optional."""
    run = store(tmp_path / "out", healthy(), rack="virtual")
    with run_pushgateway(tmp_path, web_config=web_config) as server:
        push = functools.partial(push_run, server.url, read_judged_run(run), timeout_s=TIMEOUT_S)
        assert_says(push(), "certificate is not trusted", "SSL_CERT_FILE")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pushgateway-ca.pem"))
        assert_says(push(), "401 Unauthorized", f"set {USER_VARIABLE} and {PASSWORD_VARIABLE}")
        monkeypatch.setenv(USER_VARIABLE, "lab")
        monkeypatch.setenv(PASSWORD_VARIABLE, "open barley")
        warning = push()
        assert_says(warning, "401 Unauthorized", f"correct {USER_VARIABLE} and {PASSWORD_VARIABLE}")
        assert "barley" not in str(warning)
        monkeypatch.setenv(PASSWORD_VARIABLE, "sesame")
        assert push() is None
        plain = push_run(server.url.replace("https", "http"), read_judged_run(run), timeout_s=TIMEOUT_S)
        assert_says(plain, "2 of 2 boards")  # the answer or a reset, whichever comes first


def test_the_documented_prometheus_reads_the_documented_gateway(
    tmp_path: Path, web_config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """prometheus.yaml as it stands, but for address and intervals, reads what a run pushed over TLS."""
    for name in ("alerts.yaml", "rules.yaml"):
        (tmp_path / name).write_text((METRICS / name).read_text())
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pushgateway-ca.pem"))
    monkeypatch.setenv(USER_VARIABLE, "lab")
    monkeypatch.setenv(PASSWORD_VARIABLE, "sesame")
    run = store(tmp_path / "out", healthy(), rack="tls")
    with run_pushgateway(tmp_path, web_config=web_config) as server:
        assert push_run(server.url, read_judged_run(run), timeout_s=TIMEOUT_S) is None
        documented: dict[str, Any] = YAML(typ="safe").load((METRICS / "prometheus.yaml").read_text())
        documented["global"] = {"scrape_interval": "200ms", "evaluation_interval": "200ms"}
        documented["scrape_configs"][0]["static_configs"][0]["targets"] = [
            server.url.removeprefix("https://")
        ]
        YAML().dump(documented, tmp_path / "prometheus.yaml")
        with run_configured_prometheus(tmp_path, tmp_path / "prometheus.yaml") as prometheus:
            found = prometheus.await_samples('hil_run_info{rack="tls"}')
    assert {labels["board"] for labels, _ in found} == set(BOARDS)


def test_figures_outlive_a_restart_of_the_gateway(tmp_path: Path) -> None:
    """With --persistence.file everything is there again, its age with it; without, everything is gone."""
    run = store(tmp_path / "out", healthy(), rack="kept")
    kept = tmp_path / "pushgateway.state"
    for folder in ("first", "second", "third"):
        (tmp_path / folder).mkdir()
    with run_pushgateway(tmp_path / "first", kept=kept) as server:
        assert push_run(server.url, read_judged_run(run), timeout_s=TIMEOUT_S) is None
        before = server.samples(rack="kept")
        server.stop()
    with run_pushgateway(tmp_path / "second", kept=kept) as server:
        assert server.samples(rack="kept") == before
    with run_pushgateway(tmp_path / "third") as server:
        assert not server.samples(rack="kept")
