# SPDX-License-Identifier: Apache-2.0
"""A server that behaves like GitHub's API for what a comment needs; a second one holds the artefacts.

It keeps pull requests, runs, jobs, artefacts, comments and issues, gives lists page by page,
redirects a download to the other server as GitHub does, and asks for a token wherever something is written.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

HOME = "example/hil"
FORK = "somebody/hil"
BRANCH = "faster"
TOKEN = "ghs_0123456789abcdef"
BOT = "github-actions[bot]"
RUN = 4711
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class State:
    """What the server knows; ``checks`` are those that were posted.

    ``events`` are those of pull requests, ``permissions`` what people may do here. ``trouble`` are answers
    given instead, to requests that contain the key.
    """

    head: str
    base: str = ""  # where a pull request left its branch, whose tip that still is
    files: list[str] = field(default_factory=lambda: ["firmware/main/app_main.c"])  # that it changes
    commits: int = 1
    limits: dict[str, bytes] = field(default_factory=dict)  # of the head, by name
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    issues: list[dict[str, Any]] = field(default_factory=list)
    artefacts: list[dict[str, Any]] = field(default_factory=list)
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)
    events: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    permissions: dict[str, str] = field(default_factory=dict)
    blobs: dict[int, bytes] = field(default_factory=dict)
    trouble: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    blob_headers: list[dict[str, str]] = field(default_factory=list)
    runners: dict[int, dict[str, Any]] = field(default_factory=dict)
    before_write: Callable[[], None] | None = None
    may_write: bool = True

    def add_run(self, run_id: int = RUN, *, number: int = 10, attempt: int = 1, **changes: Any) -> None:
        """Add a run of pr.yml for the head, ended, and how its jobs did."""
        self.runs[run_id] = {
            "id": run_id,
            "run_number": number,
            "run_attempt": attempt,
            "created_at": "2026-11-20T01:00:00Z",  # of the first attempt
            "run_started_at": f"2026-11-20T0{attempt}:00:00Z",
            "event": "pull_request",
            "status": "completed",
            "conclusion": "success",
            "path": ".github/workflows/pr.yml",
            "head_sha": self.head,
            "head_branch": BRANCH,
            "head_repository": {"full_name": FORK, "owner": {"login": "somebody"}},
            "repository": {"full_name": HOME},
            "pull_requests": [],  # as for every fork
            "html_url": f"https://github.com/{HOME}/actions/runs/{run_id}",
            **changes,
        }

    def set_jobs(self, verdict: str = "success", **others: str) -> None:
        """Say how the jobs ended; more than a page of them, the verdict's last."""
        names = ("hil / Plan", "hil / Virtual rack virtual", "hil / Virtual rack compare")
        shown = {**dict.fromkeys(names, "success"), **others}
        shown |= {f"Other {n}": "success" for n in range(120)}
        shown |= {"hil / hil-verdict": verdict} if verdict else {}
        begun = {"status": "completed", "created_at": "2026-11-20T01:00:00Z", "labels": [], "runner_id": 3}
        self.jobs = [{"name": name, "conclusion": how, **begun} for name, how in shown.items()]

    def add_artefact(self, content: bytes, *, size: int | None = None, **changes: Any) -> None:
        """Add the artefact "verdict" of the run, larger by ``size`` than GitHub says where it is given."""
        number = 900 + len(self.artefacts)
        said = len(content) if size is None else size
        facts = {"id": number, "name": "verdict", "size_in_bytes": said, "expired": False}
        facts |= {"created_at": "2026-11-20T01:30:00Z", **changes}
        self.artefacts.append(facts)
        self.blobs[number] = content

    def add_pull(self, number: int = 7, *, head: str = "", origin: str = FORK, branch: str = BRANCH) -> None:
        head_facts = {"sha": head or self.head, "ref": branch, "repo": {"full_name": origin}}
        more = {"user": {"login": "somebody"}, "body": "", "labels": [], "base": {"sha": self.base}}
        self.pulls[number] = {"number": number, "state": "open", "head": head_facts, **more}
        self.events.setdefault(number, [])
        self.comments.setdefault(number, [])

    def set_label(self, name: str, login: str, at_utc: str, number: int = 7) -> None:
        """Set a label, as somebody with the right to do so did at that moment."""
        self.pulls[number]["labels"].append({"name": name})
        event = {"event": "labeled", "actor": {"login": login}, "label": {"name": name}}
        self.events[number].append({**event, "created_at": at_utc})

    def add_comment(self, body: str, login: str, number: int = 7) -> dict[str, Any]:
        every = [one for listed in self.comments.values() for one in listed]
        one = {"id": 5000 + len(every), "body": body, "user": {"login": login}}
        self.comments[number].append(one)
        return one


class _Api(BaseHTTPRequestHandler):
    state: State
    blob_url: str

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.state.asked.append((self.command, self.path))
        status, headers, content = self._trouble() or self._answer(url.path, parse_qs(url.query), body)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = _handle  # noqa: N815 (http.server's names)

    def _trouble(self) -> Answer | None:
        for part, answers in self.state.trouble.items():
            if part in f"{self.command} {self.path}" and answers:
                return answers.pop(0)
        return None

    def _answer(self, path: str, query: dict[str, list[str]], body: bytes) -> Answer:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _json({"message": "Bad credentials"}, 401)
        own = path.removeprefix(f"/repos/{HOME}/")
        routes: tuple[tuple[str, Callable[..., Answer]], ...] = (
            (r"GET actions/runs/(\d+)", self._run),
            (
                r"GET actions/runs/(\d+)/attempts/\d+/jobs",
                lambda _: self._page(self.state.jobs, query, "jobs"),
            ),
            (r"GET actions/runs", lambda: self._page(self._runs(query), query, "workflow_runs")),
            (r"GET issues", lambda: self._page(self._issues(query), query)),
            (r"POST issues", lambda: self._open(json.loads(body))),
            (r"PATCH issues/(\d+)", lambda n: self._change(int(n), json.loads(body))),
            (r"GET actions/runs/(\d+)/artifacts", lambda _: self._artefacts(query)),
            (r"GET actions/artifacts/(\d+)/zip", self._zip),
            (r"GET pulls", lambda: self._pulls(query)),
            (r"GET pulls/(\d+)", lambda n: _json(self.state.pulls[int(n)])),
            (r"GET issues/(\d+)/events", lambda n: self._page(self.state.events[int(n)], query)),
            (r"GET compare/(\w+)\.\.\.(\w+)", self._compare),
            (r"GET contents/thresholds", self._limits),
            (r"GET collaborators/([\w-]+)/permission", self._permission),
            (r"GET issues/(\d+)/comments", lambda n: self._page(self.state.comments[int(n)], query)),
            (r"POST issues/(\d+)/comments", lambda n: self._post(int(n), body)),
            (r"PATCH issues/comments/(\d+)", lambda n: self._patch(int(n), body)),
            (r"POST check-runs", lambda: self._check(body)),
            (r"POST actions/runners/generate-jitconfig", lambda: self._register(body)),
        )
        for pattern, answer in routes:
            if found := re.fullmatch(pattern, f"{self.command} {own}"):
                return answer(*found.groups())
        return _json({"message": "Not Found"}, 404)

    def _run(self, run_id: str) -> Answer:
        found = self.state.runs.get(int(run_id))
        return _json(found) if found else _json({"message": "Not Found"}, 404)

    def _runs(self, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        asked = {key: query[key][0] for key in ("head_sha", "event") if key in query}
        found = self.state.runs.values()
        return [run for run in found if all(run[key] == value for key, value in asked.items())]

    def _issues(self, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        (label,), (state,) = query["labels"], query["state"]
        return [
            one
            for one in self.state.issues
            if state in ("all", one["state"]) and label in (found["name"] for found in one["labels"])
        ]

    def _open(self, asked: dict[str, Any]) -> Answer:
        if refused := self._writes():
            return refused
        one = {"number": 300 + len(self.state.issues), "state": "open", "user": {"login": BOT}, **asked}
        one["labels"] = [{"name": name} for name in asked["labels"]]
        self.state.issues.append(one)
        return _json(one, 201)

    def _change(self, number: int, asked: dict[str, Any]) -> Answer:
        if refused := self._writes():
            return refused
        (one,) = [one for one in self.state.issues if one["number"] == number]
        one |= asked
        return _json(one)

    def _compare(self, base: str, head: str) -> Answer:
        """Compare as GitHub does: at most 300 files, whatever the page."""
        if (base, head) != (self.state.base, self.state.head):
            return _json({"message": "Not Found"}, 404)
        files = [{"filename": name, "status": "modified"} for name in self.state.files[:300]]
        found = {"merge_base_commit": {"sha": base}, "total_commits": self.state.commits, "files": files}
        return _json(found)

    def _limits(self) -> Answer:
        if not self.state.limits:
            return _json({"message": "Not Found"}, 404)
        names = {name: _blob(content) for name, content in self.state.limits.items()}
        return _json([{"type": "file", "name": name, "sha": sha} for name, sha in names.items()])

    def _permission(self, login: str) -> Answer:
        if login not in self.state.permissions:
            return _json({"message": f"{login} is not a user"}, 404)
        return _json({"permission": self.state.permissions[login], "user": {"login": login}})

    def _page(self, items: list[dict[str, Any]], query: dict[str, list[str]], key: str = "") -> Answer:
        size, number = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
        part = items[size * (number - 1) : size * number]
        return _json({"total_count": len(items), key: part} if key else part)

    def _artefacts(self, query: dict[str, list[str]]) -> Answer:
        wanted = query.get("name", [""])[0]
        named = [one for one in self.state.artefacts if wanted in ("", one["name"])]
        return self._page(named, query, "artifacts")

    def _zip(self, number: str) -> Answer:
        return 302, {"Location": f"{self.blob_url}/{number}?signature=secret"}, b""

    def _pulls(self, query: dict[str, list[str]]) -> Answer:
        owner, _, branch = query["head"][0].partition(":")
        found = [
            pull
            for pull in self.state.pulls.values()
            if pull["state"] == query["state"][0]
            and pull["head"]["ref"] == branch
            and pull["head"]["repo"]["full_name"].partition("/")[0] == owner
        ]
        return self._page(found, query)

    def _writes(self) -> Answer | None:
        if self.state.before_write:
            self.state.before_write()
        refused = _json({"message": "Resource not accessible by integration"}, 403)
        return None if self.state.may_write else refused

    def _post(self, number: int, body: bytes) -> Answer:
        return self._writes() or _json(self.state.add_comment(json.loads(body)["body"], BOT, number), 201)

    def _check(self, body: bytes) -> Answer:
        asked = json.loads(body)
        known = asked["conclusion"] in ("success", "failure", "neutral")
        if not known or len(asked["output"]["title"]) > 255:
            return _json({"message": "Validation Failed"}, 422)
        self.state.checks.append(asked)
        return _json({"id": 1 + len(self.state.checks)}, 201)

    def _register(self, body: bytes) -> Answer:
        asked = json.loads(body)
        if not asked["labels"] or asked["name"] in (one["name"] for one in self.state.runners.values()):
            return _json({"message": "Already exists"}, 409)
        number = 70 + len(self.state.runners)
        self.state.runners[number] = {"id": number, **asked}
        return _json({"runner": self.state.runners[number], "encoded_jit_config": f"jit-{number}=="}, 201)

    def _patch(self, number: int, body: bytes) -> Answer:
        if refused := self._writes():
            return refused
        for one in (one for listed in self.state.comments.values() for one in listed):
            if one["id"] == number:
                one["body"] = json.loads(body)["body"]
                return _json(one)
        return _json({"message": "Not Found"}, 404)


class _Blobs(_Api):
    def _answer(self, path: str, _query: dict[str, list[str]], _body: bytes) -> Answer:
        self.state.blob_headers.append(dict(self.headers))
        return 200, {"Content-Type": "application/zip"}, self.state.blobs[int(path.strip("/"))]

    do_GET = _Api._handle  # noqa: N815


def _blob(content: bytes) -> str:
    """Return the name that git gives to a file of this content."""
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()


def _json(value: object, status: int = 200) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


@contextmanager
def serve(state: State) -> Iterator[str]:
    """Run both servers on free ports of this machine; yield the API's address."""
    blobs = ThreadingHTTPServer(("127.0.0.1", 0), type("Blobs", (_Blobs,), {"state": state}))
    blob_url = f"http://127.0.0.1:{blobs.server_address[1]}"
    own = type("Api", (_Api,), {"state": state, "blob_url": blob_url})
    api = ThreadingHTTPServer(("127.0.0.1", 0), own)
    for server in (blobs, api):
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{api.server_address[1]}"
    finally:
        for server in (api, blobs):
            server.shutdown()
            server.server_close()
