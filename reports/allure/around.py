"""The files round the results: categories, the run's environment, the workflow, faults of no single case."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hil.reports.allure.categories import CATEGORIES
from hil.reports.allure.identity import stable_uuid
from hil.reports.allure.outcome import word_of
from hil.reports.allure.story import RunStory
from hil.reports.allure.times import run_start_of
from hil.store.run_info import measured_commit

_WORKFLOW_RUN = re.compile(r"/runs/(\d+)")
_HASH_DIGITS = 12


def files_around(run: RunStory) -> Iterator[tuple[str, bytes]]:
    """Yield (file name, content)."""
    yield "categories.json", as_json(CATEGORIES)
    yield "environment.properties", _properties(environment_of(run))
    url = run.info.get("ci", {}).get("url")
    if url:
        yield "executor.json", as_json(_executor(str(url), run.run_id))
    if run.faults:
        errors = [
            {"message": f"{word_of(fault)}: {fault.sentence}", "timestamp": run_start_of(run.info)}
            for fault in run.faults
        ]
        yield f"{stable_uuid(run.run_id, 'faults')}-globals.json", as_json({"errors": errors})


def as_json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def environment_of(run: RunStory) -> dict[str, str]:
    """Return what was the same for all cases of the run."""
    info = run.info
    kinds = sorted({story.kind for story in run.stories if story.kind})
    facts: dict[str, Any] = {
        "run": run.run_id,
        "rack": info.get("rack"),
        "kinds": ", ".join(kinds),
        "suite": info.get("suite"),
        "trigger": info.get("trigger"),
        "started_utc": info.get("started_utc"),
        "commit": commit_of(info),
        "profile": info.get("profile"),
    }
    for target, firmware in sorted(info.get("firmware", {}).items()):
        facts[f"firmware.{target}"] = str(firmware.get("sha256", ""))[:_HASH_DIGITS]
    for package, version in sorted(info.get("versions", {}).items()):
        facts[f"version.{package}"] = version
    return {name: str(value) for name, value in facts.items() if value}


def commit_of(info: Mapping[str, Any]) -> str:
    """Return the measured commit, short; a tree with changes says so."""
    git = info.get("git", {})
    commit = measured_commit(info)[:_HASH_DIGITS]
    return f"{commit}, with changes" if commit and git.get("dirty") else commit


def _properties(facts: Mapping[str, str]) -> bytes:
    """Write Java's properties; what is not ASCII is escaped, for readers disagree on the encoding."""
    lines = [f"{name}={_escaped(value)}\n" for name, value in facts.items()]
    return "".join(lines).encode("ascii")


def _escaped(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "")
    units = plain.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 0x7F else f"\\u{code:04x}" for code in codes)


def _executor(url: str, run_id: str) -> dict[str, object]:
    number = _WORKFLOW_RUN.search(url)
    order = {"buildOrder": int(number[1])} if number else {}
    return {"name": "GitHub Actions", "type": "github", "buildName": run_id, "buildUrl": url, **order}
