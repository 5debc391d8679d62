"""allure-pytest's own results, as hil.fixtures.allure left them in the run's folder; none need be there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = "allure-pytest"
# what pytest knows worse than the records do, or what differs without meaning: process, thread, host
_OWNED_LABELS = frozenset(
    ("parentSuite", "suite", "subSuite", "severity", "framework", "language", "package", "host", "thread")
)


@dataclass(frozen=True)
class RawResult:
    """What a bench's test function added: steps, links, labels, attachments; and how its item ended."""

    content: dict[str, Any] = field(default_factory=dict)

    @property
    def failure(self) -> str:
        """Return what pytest says of an item that did not pass, else ""."""
        if self.content.get("status") not in ("failed", "broken"):
            return ""
        return str(self.content.get("statusDetails", {}).get("message") or "no message")

    @property
    def trace(self) -> str:
        return str(self.content.get("statusDetails", {}).get("trace") or "")

    @property
    def labels(self) -> list[tuple[str, str]]:
        found = [(str(label["name"]), str(label["value"])) for label in self.content.get("labels", [])]
        return [pair for pair in found if pair[0] not in _OWNED_LABELS]

    def of(self, key: str) -> list[dict[str, Any]]:
        """Return the list ``steps``, ``links`` or ``attachments``."""
        return list(self.content.get(key, []))


def read_raw_results(run_path: Path) -> dict[tuple[str, str, str], RawResult]:
    """Return the results by full name, board and case label; a file that cannot be read is left out."""
    found = {}
    for path in sorted((run_path / FOLDER).glob("*-result.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            values = {item["name"]: _unquoted(str(item["value"])) for item in content["parameters"]}
            found[content["fullName"], values["board"], values["case"]] = RawResult(content)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a run that was killed may leave half of one, and the journal has the same case
    return found


def raw_files(run_path: Path, result: RawResult) -> dict[str, bytes]:
    """Return the files that a raw result attaches, at any depth of its steps."""
    names = _sources(result.content)
    paths = {name: run_path / FOLDER / name for name in names if "/" not in name}
    return {name: path.read_bytes() for name, path in paths.items() if path.is_file()}


def _sources(item: dict[str, Any]) -> list[str]:
    own = [str(attachment.get("source")) for attachment in item.get("attachments", [])]
    return own + [name for step in item.get("steps", []) for name in _sources(step)]


def _unquoted(text: str) -> str:
    """Undo allure_commons.utils.represent for a text."""
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == "'" else text
