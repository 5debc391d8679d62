# SPDX-License-Identifier: Apache-2.0
"""A small virtual rack whose runs are compared: noise at will, two builds, verdicts as they were judged."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab import Lab, make_lab, run

METRIC = "publish_latency_p50_us"
_ACCESS_POINT = re.compile(r"^access_point:.*$", re.MULTILINE)


def suites(payloads: Sequence[int], count: int, interval_us: int) -> dict[str, str]:
    """Return the one suite `pr`: a case a payload."""
    listed = ", ".join(map(str, payloads))
    case = f"{{payload_bytes: [{listed}], count: {count}, warmup: 5, interval_us: {interval_us}}}"
    return {"publish": f"suites:\n  pr:\n    - {case}\n\n"}


@dataclass(frozen=True)
class Judged:
    """One run as it was judged. ``compared`` are its comparisons as verdicts.json has them."""

    path: Path
    exit_code: int
    seconds: float
    said: str
    verdict: Mapping[str, Any]

    @property
    def compared(self) -> list[dict[str, Any]]:
        return list(self.verdict.get("compared", ()))

    @property
    def blocking(self) -> list[dict[str, Any]]:
        return [one for one in self.compared if one["blocking"]]

    def outcomes(self) -> list[str]:
        return [one["outcome"] for one in self.blocking]

    @property
    def boots(self) -> int:
        """Boots a board, of both sides."""
        return max((one["candidate_boots"] + one["other_boots"] for one in self.boards()), default=0)

    def boards(self) -> list[dict[str, Any]]:
        return [effect for one in self.compared for effect in one["effects"]]


@dataclass
class GateLab:
    """``lab`` with rules that compare METRIC and no absolute limits."""

    lab: Lab

    @property
    def thresholds(self) -> Path:
        return self.lab.folder / "thresholds"

    def set_noise(self, section: str) -> None:
        """Write the rack file's noise, "" for none."""
        noise = f", noise: {section}" if section else ""
        point = f"access_point: {{type: virtual, profile: lab, seed: 1{noise}}}"
        self.lab.rack.write_text(_ACCESS_POINT.sub(lambda _match: point, self.lab.rack.read_text()))

    def compare(self, candidate: Path, base: Path, *more: str) -> Judged:
        """Measure ``candidate`` beside ``base`` and judge it."""
        command = self.lab.command("--suite", "pr", "--base", str(base), "--firmware", str(candidate), *more)
        began = time.monotonic()
        done = run(command, env=self.lab.env, timeout_s=1500.0)
        seconds = time.monotonic() - began
        path = (self.lab.out / "latest").resolve()
        stored = path / "verdicts.json"
        verdict = json.loads(stored.read_text(encoding="utf-8")) if stored.is_file() else {}
        return Judged(path, done.returncode, seconds, done.stdout, verdict)

    def replay(self, run: Path) -> subprocess.CompletedProcess[str]:
        """Judge a run's folder again, by nothing but what it holds."""
        return self.lab.hil("gate", str(run))


def open_gate_lab(
    folder: Path, boards: int, wanted: Mapping[str, str], *, tolerance: float = 0.10
) -> GateLab:
    """Make a lab in ``folder``, or return the one that is there. Noise is off."""
    if (folder / "rack.yaml").is_file():
        lab = Lab(folder)
        lab.env["TMPDIR"] = str(lab.temporary)
        return GateLab(lab)
    folder.mkdir(parents=True, exist_ok=True)
    lab = make_lab(folder, boards, suites=wanted)
    rules = [
        f"  - {{where: {{metric: {METRIC}}}, tolerance_ratio: {tolerance}, min_effect_ratio: 0.03,",
        "     why: what a message usually takes}",
    ]
    for path in (folder / "thresholds").glob("*.yaml"):
        text = _without(_without(path.read_text(), "compare"), "limits")
        if path.stem == "publish":
            text += "\ncompare:\n" + "\n".join(rules) + "\n"
        path.write_text(text)
    return GateLab(lab)


def _without(text: str, key: str) -> str:
    """Return a YAML text without one of its top-level keys."""
    return re.sub(rf"^{key}:.*\n(?:(?:[ #].*)?\n)*", "", text, flags=re.MULTILINE)
