# SPDX-License-Identifier: Apache-2.0
"""A real Pushgateway and a real Prometheus that scrapes it, each on a port that the kernel chose."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

from prometheus_client.parser import text_string_to_metric_families

from hil.base.process import DIE_WITH_PARENT
from tests.lab import wait_for

DEADLINE_S = 60.0

Labels = dict[str, str]


@dataclass(frozen=True)
class Server:
    """A running server; ``url`` is where it listens."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=DEADLINE_S)

    def stop(self) -> None:
        """End it in order, as a service manager does."""
        self.process.terminate()
        self.process.wait(timeout=DEADLINE_S)


class Pushgateway(Server):
    def delete(self, path: str) -> None:
        fetch(Request(f"{self.url}{path}", method="DELETE"))  # noqa: S310 (http, on the loopback)

    def put(self, path: str, text: str) -> None:
        fetch(Request(f"{self.url}{path}", text.encode(), method="PUT"))  # noqa: S310 (http, on the loopback)

    def samples(self, **wanted: str) -> dict[str, list[tuple[Labels, float]]]:
        """Return (labels, value) by metric of what it holds, where the labels are as wanted."""
        found: dict[str, list[tuple[Labels, float]]] = {}
        for family in text_string_to_metric_families(fetch(f"{self.url}/metrics").decode()):
            for sample in family.samples:
                if wanted.items() <= sample.labels.items():
                    found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return found


class Prometheus(Server):
    def query(self, expression: str) -> list[tuple[Labels, float]]:
        """Return (labels, value) of an instant query."""
        found = self._ask("query", query=expression)["result"]
        return [(item["metric"], float(item["value"][1])) for item in found]

    def series(self, selector: str) -> list[Labels]:
        """Return every series there has been in the last hour."""
        found: list[Labels] = self._ask("series", **{"match[]": selector, "start": str(time.time() - 3600)})
        return found

    def await_samples(self, expression: str) -> list[tuple[Labels, float]]:
        """Wait until an expression has an answer, and return it."""
        found: list[tuple[Labels, float]] = []

        def answered() -> bool:
            found[:] = self.query(expression)
            return bool(found)

        wait_for(answered, lambda: f"{expression}: no sample", DEADLINE_S)
        return found

    def label_values(self, label: str, selector: str) -> list[str]:
        """Return what Grafana's label_values(selector, label) does."""
        found: list[str] = self._ask(f"label/{label}/values", **{"match[]": selector})
        return found

    def await_run(self, run_id: str, boards: int) -> None:
        """Wait until the figures of a run were scraped for so many boards."""
        expression = f'hil_run_info{{run_id="{run_id}"}}'
        wait_for(
            lambda: len(self.query(expression)) == boards, lambda: f"{expression}: not scraped", DEADLINE_S
        )

    def _ask(self, endpoint: str, **parameters: str) -> Any:
        answer = json.loads(fetch(f"{self.url}/api/v1/{endpoint}?{urlencode(parameters)}"))
        assert answer["status"] == "success", answer
        return answer["data"]


def fetch(request: str | Request) -> bytes:
    """Return a body; the loopback is reached without a proxy, whatever the environment says."""
    with build_opener(ProxyHandler({})).open(request, timeout=DEADLINE_S) as answer:
        body: bytes = answer.read()
        return body


@contextmanager
def run_pushgateway(folder: Path, *, web_config: str = "", kept: Path | None = None) -> Iterator[Pushgateway]:
    """Start a gateway; ``web_config`` (TLS, passwords) is the content of its --web.config.file.

    ``kept`` is its --persistence.file; without it a restart forgets everything.
    """
    options = [f"--persistence.file={kept or ''}"]
    if web_config:
        (folder / "web.yaml").write_text(web_config)
        options.append(f"--web.config.file={folder / 'web.yaml'}")
    with _running("prometheus-pushgateway", options, folder) as (address, process):
        scheme = "https" if "tls_server_config" in web_config else "http"
        gateway = Pushgateway(f"{scheme}://{address}", process)
        if not web_config:
            _await_ready(gateway)
        yield gateway


@contextmanager
def run_prometheus(folder: Path, gateway: Pushgateway, *, rules: Path | None = None) -> Iterator[Prometheus]:
    """Start a Prometheus that scrapes ``gateway`` as the prometheus.yaml of the docs does, only more often.

    It looks at its list of targets 5 s after it started, so start it early and ask it late. ``rules`` is a
    file of recording rules.
    """
    target = gateway.url.removeprefix("http://")
    job = f"{{job_name: pushgateway, honor_labels: true, static_configs: [{{targets: ['{target}']}}]}}"
    often = "global: {scrape_interval: 200ms, evaluation_interval: 200ms}"
    config = folder / "prometheus.yaml"
    config.write_text(f"{often}\nrule_files: [{rules or ''}]\nscrape_configs:\n  - {job}\n")
    with run_configured_prometheus(folder, config) as prometheus:
        yield prometheus


@contextmanager
def run_configured_prometheus(folder: Path, config: Path) -> Iterator[Prometheus]:
    """Start a Prometheus with a configuration file of one's own; ``folder`` holds its data."""
    options = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    with _running("prometheus", options, folder) as (address, process):
        prometheus = Prometheus(f"http://{address}", process)
        _await_ready(prometheus)
        yield prometheus


@contextmanager
def _running(
    program: str, options: Sequence[str], folder: Path
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    log = folder / f"{program}.log"
    command = [*DIE_WITH_PARENT, program, "--web.listen-address=127.0.0.1:0", *options]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield _await_address(log, process), process
    finally:
        process.kill()
        process.wait(timeout=DEADLINE_S)


def _await_address(log: Path, process: subprocess.Popen[bytes]) -> str:
    pattern = re.compile(r'"Listening on" address=(127\.0\.0\.1:[1-9]\d*)')

    def said_or_ended() -> bool:
        return bool(pattern.search(log.read_text())) or process.poll() is not None

    wait_for(said_or_ended, log.read_text, DEADLINE_S)
    match = pattern.search(log.read_text())
    assert match, log.read_text()
    return match[1]


def _await_ready(server: Server) -> None:
    def ready() -> bool:
        assert server.process.poll() is None, "the server ended"
        try:
            fetch(f"{server.url}/-/ready")
        except URLError:
            return False
        return True

    wait_for(ready, lambda: f"{server.url} does not become ready", DEADLINE_S)
