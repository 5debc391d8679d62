# SPDX-License-Identifier: Apache-2.0
"""What stands behind a chart of a reported run: distribution, boots, files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.history import keep
from hil.metrics.boot_value import boot_value
from hil.model import RunRecord
from hil.reports.site.runs import shown
from hil.reports.trend import TrendSources, choosing, read_sources, trend_of, write_trend
from hil.reports.trend.details import distribution
from hil.store import read_judged_run
from tests.history.history_files import night
from tests.make_records import publish_record, publish_thresholds
from tests.reports.site_runs import store_run
from tests.reports.trend_rig import validator

NAME = "20260301T101500Z-quick-0001"
LATENCY = "publish latency"


def detail_of(run: Path, quantity: str = LATENCY, **info: Any) -> dict[str, Any]:
    """Return the detail of the run's one case."""
    (found,) = [one for key, one in data_of(run, **info)["details"].items() if key.endswith(f"/{quantity}")]
    return dict(found)


def data_of(run: Path, sources: TrendSources | None = None) -> dict[str, Any]:
    """Return the trend of a stored run as it is read back from JSON, checked against its schema."""
    own = sources or TrendSources(thresholds={"publish": publish_thresholds()})
    found = trend_of(
        [shown(read_judged_run(run))], [], own, title="title", remark="virtual figures", most=400
    )
    data: dict[str, Any] = json.loads(json.dumps(found.data, allow_nan=False))
    validator().validate(data)
    return data


def boots(count: int, *, base: bool = False, failed: int = 0) -> list[RunRecord]:
    """Return boots of a candidate; with ``base`` in turn with boots of a base, which is faster."""
    own = [publish_record(boot_index=2 * n, latency_ms=8, failed=failed, seed=n) for n in range(count)]
    other = [
        replace(
            publish_record(boot_index=2 * n + 1, latency_ms=7, seed=n), role="base", firmware_sha256="cd" * 32
        )
        for n in range(count)
    ]
    return [*own, *other] if base else own


def test_candidate_and_base_share_their_bins(tmp_path: Path) -> None:
    """Both are counted in the same bins, at most 60, each sample once; warm-up is left out. Boots are in the
    order in which they were measured, and each value is the one that the gate compares, in the chart's unit.
    """
    detail = detail_of(store_run(tmp_path, NAME, boots(3, base=True)))
    found = detail["distribution"]
    assert (found["scale"], found["role"]) == ("log", "base")
    assert len(found["candidate"]) == len(found["other"]) == len(found["edges"]) - 1 <= 60
    assert sum(found["candidate"]) == found["candidate_samples"] == 300
    assert sum(found["other"]) == found["other_samples"] == 300
    assert found["edges"] == sorted(found["edges"])
    assert detail["boots"]["role"] == ["candidate", "base"] * 3
    assert detail["boots"]["index"] == [0, 1, 2, 3, 4, 5]
    assert set(detail["boots"]["stats"]) == {"p50", "p95", "tail5", "p99"}
    value = boot_value(publish_thresholds().metrics["publish_latency_p95_us"], boots(3)[1])
    assert value
    assert detail["unit"] == "ms"
    assert detail["boots"]["stats"]["p95"][2] == pytest.approx(value.value / 1000, rel=1e-4)


def test_a_boot_beyond_the_timeout_has_no_value(tmp_path: Path) -> None:
    """More than 5 % timeouts leave p95 without a number and p50 with one."""
    found = detail_of(store_run(tmp_path, NAME, boots(1, failed=10)))
    assert found["boots"]["stats"]["p95"] == [None]
    assert found["boots"]["stats"]["p50"][0] > 0


def test_a_quantity_without_samples_has_its_boots(tmp_path: Path) -> None:
    """A ratio has a value a boot, and no distribution."""
    found = detail_of(store_run(tmp_path, NAME, boots(2)), "publish failed")
    assert (found["distribution"], found["boots"]["stats"]) == (None, {"": [0, 0]})


def test_details_lead_to_the_runs_files_and_test(tmp_path: Path) -> None:
    """Each address goes from the trend page to a file that the site publishes, or to the case's result.
    Without a comparison there is nothing beside the candidate; its limits stand in the chart's unit."""
    run = store_run(tmp_path, NAME, boots(1))
    data = data_of(run)
    (detail,) = [one for key, one in data["details"].items() if key.endswith(LATENCY)]
    assert detail["test"] in {series["test"] for series in data["series"]} - {""}
    addresses = [file["href"] for file in detail["files"]]
    assert addresses[0] == f"../tests/index.html#{detail['test']}"
    assert f"../runs/{NAME}/records.jsonl" in addresses
    found = detail["distribution"]
    assert (found["other"], found["role"], found["other_samples"]) == (None, None, None)
    assert {"stat": "p95", "value": 25} in found["limits"]


@pytest.mark.parametrize("values", [[5.0] * 9, [0.0] * 3, [-1.0, 4.0, 0.0], [7.0], [1e-9, 1e9, 1.0]])
def test_a_distribution_counts_every_value_once(values: list[float]) -> None:
    """Equal values, zeros, negative ones and far outliers: edges ascend, and no value is lost; of none there
    is nothing to count."""
    found = distribution(values, values[:2], role="reference", log=True)
    assert found
    assert all(low < high for low, high in zip(found["edges"], found["edges"][1:], strict=False))
    assert (sum(found["candidate"]), sum(found["other"])) == (len(values), len(values[:2]))
    assert found["scale"] == ("log" if min(values) > 0 else "linear")
    assert distribution([], values, role="reference", log=True) is None


def test_what_broke_has_its_details_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more charts than the page can hold those that broke a limit stay, and a note says so."""
    monkeypatch.setattr(choosing, "MOST_DETAILS", 1)
    slow = publish_record(overrides={"qos": 2}, latency_ms=60)
    data = data_of(store_run(tmp_path, NAME, [*boots(1), slow]))
    (key,) = data["details"]
    assert "qos=2" in key
    assert key.endswith(LATENCY)
    assert any("1 of 12 charts" in note for note in data["notes"])


def test_damaged_boot_values_are_a_note(tmp_path: Path) -> None:
    """The trend goes on without them, names the file and the way out, and not where it lies."""
    folder = tmp_path / "history"
    keep(folder, night(1))
    (broken,) = folder.glob("*/*.json")
    broken.write_text("{")
    run = store_run(tmp_path, NAME, boots(1))
    data = data_of(run, read_sources(folder, [shown(read_judged_run(run))]))
    (note,) = data["notes"]
    assert re.search(f": history/bench-1/{broken.name}: .*delete the file", note)
    assert str(tmp_path) not in json.dumps(data)


def test_damaged_thresholds_cost_the_details_alone(tmp_path: Path) -> None:
    """What is behind the figures is left out with a sentence; the figures are there."""
    run = store_run(tmp_path, NAME, boots(1))
    (run / "thresholds").mkdir()
    (run / "thresholds" / "publish.yaml").write_text("schema: 1\nbench: publish\nnonsense: 1\n")
    data = data_of(run)
    assert data["details"] == {}
    assert any(series["now"] == 0 for series in data["series"])
    (note,) = data["notes"]
    assert re.search(f"{NAME} .*: thresholds/publish.yaml:1: ", note)
    assert str(tmp_path) not in note


def test_nothing_of_the_machine_is_in_the_trend(tmp_path: Path) -> None:
    """Neither who started a run, on which host and how, nor a path; made twice it is the same."""
    secrets = {"user": "ada", "host": "cellar-pc", "argv": ["/srv/x"]}
    keep(tmp_path / "history", night(1, rack="virtual"))
    run = store_run(tmp_path, NAME, boots(2, base=True), trigger="nightly", **secrets)
    written = []
    for _ in range(2):
        data = data_of(run, read_sources(tmp_path / "history", [shown(read_judged_run(run))]))
        write_trend(tmp_path / "trend.json", data)
        written.append((tmp_path / "trend.json").read_bytes())
    assert written[0] == written[1]
    assert b"bench-1" not in written[0]
    for word in (str(tmp_path), "ada", "cellar-pc", "/srv/", str(Path.cwd())):
        assert word.encode() not in written[0]
