# SPDX-License-Identifier: Apache-2.0
"""Files of older days brought to what they are today, reversibly: `hil migrate`.

All that ever changed its place, name or words, and is not only read as what it is called today:

    hil-data/<rack>/<run-id>.json   boot values lie in history/ since
    metrics.jsonl, verdicts.json    ``inconclusive`` is ``undecided`` since, with exit code 4 instead of 0
    thresholds/<stem>.yaml          ``on_inconclusive: warn`` is ``on_undecided: neutral`` since
    thresholds/baselines/*.yaml     ``kappa`` of an epoch decides nothing any more

Journals, limits and histories in run folders are evidence of their day: read, and never rewritten.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from hil.base.errors import ConfigError
from hil.base.schema import refuse_newer
from hil.history.loading import read_bytes, read_segment, segment_paths
from hil.model import SCHEMA_VERSION
from hil.store.codec import decode
from hil.store.directory import JOURNAL, VERDICTS
from hil.store.outcomes import with_todays_outcomes
from hil.store.verdicts import parse_verdict
from hil.thresholds.rule_reader import FORMER_KEY, FORMER_WORDS

OLD_STORE, STORE, LINES = "hil-data", "history", "metrics.jsonl"
_SKIPPED = {"node_modules", "managed_components", "__pycache__", "report"}
_FORMER = re.compile(rf"\b{FORMER_KEY}(\s*:\s*)({'|'.join(FORMER_WORDS)})\b")
_KAPPA = re.compile(r"^( +)kappa:.*\n(?:\1 +.*\n|\s*\n)*", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """One file: where it is, where it will be (``path`` itself but of what moves), what it will hold, why."""

    path: Path
    target: Path
    content: bytes
    why: str


def find_steps(root: Path) -> list[Step]:
    """Return what is to be done with the file or folder ``root``; nothing where all is of today.

    Raises ConfigError: there is no such file, one is damaged, or only a newer hil reads it.
    """
    if not root.exists():
        raise ConfigError(f"{root}: no such file or folder.")
    steps: list[Step] = []
    for path in _candidates(root):
        if path.suffix == ".yaml":
            steps += _of_yaml(path)
        elif path.name == LINES:
            steps += _rewritten(path, _todays_lines, "outcomes by their names of today")
        else:
            steps += _of_verdict(path)
    for folder in _old_stores(root):
        steps += _moved(folder)
    return steps


def _candidates(root: Path) -> Iterator[Path]:
    """Yield the files that may be of older days; in a run's folder that is its verdict alone."""
    if root.is_file():
        if root.suffix == ".yaml" or root.name in (LINES, VERDICTS):
            yield root
        return
    for name, folders, files in os.walk(root):
        folder = Path(name)
        is_run = JOURNAL in files
        folders[:] = [] if is_run else sorted(f for f in folders if f not in _SKIPPED and f[0] != ".")
        for file in sorted(files):
            if file == VERDICTS if is_run else file == LINES or _is_limits(folder / file):
                yield folder / file


def _is_limits(path: Path) -> bool:
    return path.suffix == ".yaml" and path.parent.name in ("thresholds", "baselines")


def _old_stores(root: Path) -> list[Path]:
    found = [root] if root.name == OLD_STORE else [root / OLD_STORE, root / "out" / OLD_STORE]
    return [folder for folder in found if folder.is_dir()]


def _moved(folder: Path) -> Iterator[Step]:
    """Yield the runs of the store of before that today's lacks. The old folder stays as it is."""
    for path in segment_paths(folder):
        read_segment(path)
        target = folder.parent / STORE / path.relative_to(folder)
        if not target.exists():
            yield Step(path, target, read_bytes(path), f"boot values are in {STORE}/ since")
        elif read_bytes(target) != read_bytes(path):
            raise ConfigError(
                f"{path} and {target} are one run with two contents; a file of the history never changes.",
                next_step="delete the one that was changed, then migrate again.",
            )


def _rewritten(path: Path, change: Callable[[Path, bytes], bytes], why: str) -> Iterator[Step]:
    before = read_bytes(path)
    after = change(path, before)
    if after != before:
        yield Step(path, path, after, why)


def _todays_lines(path: Path, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join(_todays_line(path, number, line) for number, line in enumerate(lines, start=1))


def _todays_line(path: Path, number: int, line: bytes) -> bytes:
    """Return a line as today writes it; one that says nothing of before, or is cut off, keeps its bytes."""
    try:
        before = decode(line)
    except ValueError:
        return line  # what is damaged, readers name
    if isinstance(before, dict):
        refuse_newer(before.get("schema"), SCHEMA_VERSION, f"{path}:{number}")
    after = with_todays_outcomes(before)
    if after == before:
        return line
    return (json.dumps(after, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode()


def _of_verdict(path: Path) -> Iterator[Step]:
    content = read_bytes(path)
    verdict = parse_verdict(path, content)
    stored = decode(content)
    if with_todays_outcomes(stored) != stored:
        text = json.dumps(verdict.to_json(), ensure_ascii=False, allow_nan=False, sort_keys=True, indent=2)
        yield Step(path, path, f"{text}\n".encode(), "outcomes by their names of today")


def _of_yaml(path: Path) -> Iterator[Step]:
    """Yield the change of a file of limits or epochs: its comments and its layout stay."""
    text = read_bytes(path).decode(errors="strict")
    stored = _loaded(path, text)
    if not isinstance(stored, dict):
        return
    refuse_newer(stored.get("schema"), SCHEMA_VERSION, str(path))
    policy = stored.get("policy")
    if isinstance(policy, dict) and FORMER_KEY in policy:
        after = _FORMER.sub(lambda found: f"on_undecided{found[1]}{FORMER_WORDS[found[2]]}", text)
        wanted = {key: value for key, value in policy.items() if key != FORMER_KEY}
        wanted["on_undecided"] = FORMER_WORDS.get(str(policy[FORMER_KEY]))
        yield _checked(path, after, {**stored, "policy": wanted}, "the policy by its name of today")
    epochs = stored.get("epochs")
    if isinstance(epochs, list) and any(isinstance(one, dict) and "kappa" in one for one in epochs):
        wanted_epochs = [{key: value for key, value in one.items() if key != "kappa"} for one in epochs]
        after = _KAPPA.sub("", text)
        yield _checked(path, after, {**stored, "epochs": wanted_epochs}, "kappa decides nothing any more")


def _loaded(path: Path, text: str) -> Any:
    try:
        return YAML(typ="safe").load(StringIO(text))
    except YAMLError as error:
        raise ConfigError(
            f"{path}: no YAML: {str(error).splitlines()[0]}.", next_step="correct it."
        ) from error


def _checked(path: Path, text: str, wanted: object, why: str) -> Step:
    """Return the step, of which the text says what is wanted and nothing else."""
    if _loaded(path, text) != wanted:
        raise ConfigError(
            f"{path}: it is laid out so that it cannot be changed by itself ({why}).",
            next_step="change it by hand; the sentence that refuses it says how.",
        )
    return Step(path, path, text.encode(), why)
