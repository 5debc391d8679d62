# SPDX-License-Identifier: Apache-2.0
"""A planted priority inversion is found, from the board's events to the sentence in the report."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hil.trace.files import read_stored
from hil.trace.finding import INVERSION
from tests.host_builds import build_variant
from tests.lab import Lab, make_lab, of_type
from tests.reports.as_read import as_read

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.needs_real_time]

BREAK_US = 2000  # a lock of the real firmware is held for 200 µs, its middle task runs for 5 ms
# Three cases: the host under the board may be later than that, and then a trace is of that.
METRIC = "resource_wait_p95_us"
SUITE = f"""\
suites:
  quick:
    - {{resource: mutex, trace: outlier, break_us: [{BREAK_US}, {BREAK_US + 100}, {BREAK_US + 200}],
       period_us: 5000, count: 100, warmup: 5}}

"""


@dataclass
class Told(Lab):
    """A lab that has run; ``said`` is what `hil run` printed."""

    said: str = ""


@pytest.fixture(scope="module")
def labs(virtual_firmware: Path) -> Iterator[dict[str, Told]]:
    """A run of the firmware as it is, and one with reports of the variant. Folders have short names."""
    planted = build_variant("inverted_jitter")  # a lock that lends nobody a priority
    found: dict[str, Told] = {}
    for name, firmware in (("sound", virtual_firmware), ("planted", planted)):
        folder = Path(tempfile.mkdtemp(prefix="hil-lab-"))
        lab = make_lab(folder, 1, firmware=firmware, suites={"jitter": SUITE})
        found[name] = Told(**vars(lab), said=lab.run(report=name == "planted").stdout)
    yield found
    for lab in found.values():
        shutil.rmtree(lab.folder)


def findings(lab: Lab) -> list[dict[str, Any]]:
    """Return the groups `trace` of the lab's records; all three cases were measured."""
    entries = lab.entries()
    records = of_type(entries, "record")
    assert len(records) == 3, entries
    return [record["environment"]["trace"] for record in records if "trace" in record["environment"]]


def outcomes(lab: Lab, metric: str) -> list[str]:
    verdict = json.loads((lab.out / "latest" / "verdicts.json").read_text())
    return [item["outcome"] for item in verdict["series"] if item["metric"] == metric]


def inversions(lab: Lab) -> list[dict[str, Any]]:
    return [group for group in findings(lab) if group["finding"].startswith(INVERSION)]


def test_a_mutex_shows_no_inversion(labs: dict[str, Told]) -> None:
    """The firmware as it is lends the priority and keeps its limit; no trace calls anything an inversion."""
    assert not inversions(labs["sound"])
    assert set(outcomes(labs["sound"], METRIC)) == {"pass"}


def test_the_planted_inversion_is_named(labs: dict[str, Told]) -> None:
    """The outlier's trace says who waited, who held, who was in the way, and that nobody inherited."""
    lab = labs["planted"]
    assert "regressed" in outcomes(lab, METRIC)
    assert len(findings(lab)) == 3
    found = inversions(lab)
    assert found, findings(lab)
    for group in found:
        assert group["frozen"] is True
        assert group["outlier_us"] > BREAK_US
        assert re.findall(r"\w+ \(\d+\)", group["finding"]) == ["jitter (20)", "low (6)", "middle (10)"]
        assert group["finding"].endswith("nobody inherited")
        stored = read_stored(lab.out / "latest" / group["file"])
        assert not stored.trace.exact
        assert stored.finding.sentence == group["finding"]


def test_the_report_names_it(labs: dict[str, Told]) -> None:
    """Terminal, summary, test report and first page say it, and lead to the picture and the trace."""
    lab = labs["planted"]
    run, group = lab.out / "latest", inversions(lab)[0]
    assert "middle (10)" in " ".join(lab.said.split())
    picture = str(Path(group["file"]).with_suffix(".svg"))
    line = next(line for line in as_read((run / "summary.md").read_text()).splitlines() if picture in line)
    assert line.startswith("- b1 (virtual) jitter/")
    assert group["finding"] in line
    results = [json.loads(path.read_text()) for path in (run / "allure-results").glob("*-result.json")]
    told = [one for one in results if group["finding"] in one["descriptionHtml"]]  # others may say the same
    kinds = {one["name"]: one["type"] for one in told[0]["attachments"]}
    assert kinds["scheduler trace, boot 0, virtual"] == "image/svg+xml"
    assert f"/{picture}" in (lab.out / "report" / "index.html").read_text()
    assert list((lab.out / "report" / "runs").glob(f"*/{picture}"))
