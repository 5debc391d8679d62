# SPDX-License-Identifier: Apache-2.0
"""The token that pushes a history: shown to GitHub by the step that pushes, kept in no file."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from hil.history.branch import with_token
from tests.ci.ci_rig import Repository
from tests.ci.test_locks import jobs
from tests.lab import ROOT, run

TOKEN = "ghs_word"
BASIC = f"basic {base64.b64encode(f'x-access-token:{TOKEN}'.encode()).decode()}"


class Server(HTTPServer):
    """Refuses whatever is asked, and keeps who asked."""

    said: list[str | None]


class Refuses(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.said.append(self.headers["Authorization"])
        self.send_response(403)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # its name there
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Refuses) as made:
        made.said = []
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def push(repository: Repository, **environment: str) -> subprocess.CompletedProcess[str]:
    folder = repository.path / "history"
    folder.mkdir(exist_ok=True)
    (folder / "allure.jsonl").write_text("{}\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GIT_"))}
    argv = [sys.executable, "-m", "hil", "history", "push", "--history", folder]
    own = {"PYTHONPATH": str(ROOT), "no_proxy": "127.0.0.1", **environment}
    return run(argv, repository.path, env={**kept, **own})


@pytest.mark.slow
def test_the_push_shows_the_token_to_its_server_alone(server: Server, tmp_path: Path) -> None:
    """As GitHub's own checkout would, and to no other server; neither what is said nor a file has it."""
    repository = Repository(tmp_path / "repository")
    repository.commit({"README.md": "1"})
    url = f"http://127.0.0.1:{server.server_port}"
    repository.git("remote", "add", "origin", f"{url}/me/hil")
    done = push(repository, GITHUB_TOKEN=TOKEN, GITHUB_SERVER_URL=url)
    assert done.returncode == 2, done.stdout
    assert server.said
    assert set(server.said) == {BASIC}
    assert TOKEN not in done.stdout
    assert BASIC.partition(" ")[2] not in done.stdout + (repository.path / ".git" / "config").read_text()
    server.said.clear()
    push(repository, GITHUB_TOKEN=TOKEN, GITHUB_SERVER_URL="https://github.example")
    assert set(server.said) == {None}


def test_what_is_configured_by_the_environment_stays() -> None:
    """Ours is one entry more; without a token or a server there is none."""
    facts = {"GITHUB_TOKEN": TOKEN, "GITHUB_SERVER_URL": "https://github.example/", "GIT_CONFIG_COUNT": "2"}
    found = with_token(facts)
    assert found["GIT_CONFIG_COUNT"] == "3"
    assert found["GIT_CONFIG_KEY_2"] == "http.https://github.example/.extraheader"
    assert with_token({"GITHUB_TOKEN": TOKEN}) == with_token({"GITHUB_SERVER_URL": "https://x"}) == {}


def test_no_checkout_keeps_a_token() -> None:
    """Credentials are given to the steps that fetch or push, by their environment."""
    for name, job in jobs():
        for step in job.get("steps", []):
            if "actions/checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False, name
            if "hil history push" in step.get("run", ""):
                assert step["env"] == {"GITHUB_TOKEN": "${{ github.token }}"}, name
