# SPDX-License-Identifier: Apache-2.0
"""The figures in the history: of each judged run what the gate said, once, and as it said it last."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hil.base.errors import ConfigError, RigError
from hil.history.files import keep, read_past
from hil.history.from_run import keep_run, summary_of
from hil.model import Fault
from hil.reports.history import comparable, line_of, locked, with_runs
from hil.store import RunDirectory, read_judged_run
from hil.store.verdicts import read_verdict
from tests.history.history_files import night
from tests.make_records import run_info
from tests.reports.site_runs import healthy, rejudge, store_run

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schema" / "history.schema.json"
NAMES = ("20261121T101500Z-quick-0001", "20261122T101500Z-quick-0002", "20261123T101500Z-quick-0003")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three runs; the third breaks a limit."""
    out = tmp_path_factory.mktemp("out")
    latencies = (7.0, 7.5, 31.0)
    return [store_run(out, name, healthy(ms)) for name, ms in zip(NAMES, latencies, strict=True)]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "history"


def test_a_line_holds_every_figure_with_limit_and_outcome(runs: list[Path], tmp_path: Path) -> None:
    """What the gate said of a series is found under board, case and metric; and over which air."""
    line = line_of(read_judged_run(runs[2]))
    case = next(case for case in line["cases"] if (case["board"], case["label"]) == ("v2", "transport=tls"))
    p95 = case["metrics"]["publish_latency_p95_us"]
    assert (p95["limit"], p95["outcome"], p95["blocking"]) == (25_000.0, "regressed", True)
    assert 31_000 < p95["value"] < 40_000
    assert [line[key] for key in ("outcome", "exit_code", "rack")] == ["regressed", 1, "virtual"]
    assert line["trigger"] == "local"
    hotspot = store_run(tmp_path, NAMES[0], healthy(), profile="hotspot")
    assert [line_of(read_judged_run(run))["profile"] for run in (runs[2], hotspot)] == ["", "hotspot"]
    verdict = json.loads((runs[2] / "verdicts.json").read_text())
    assert sum(len(case["metrics"]) for case in line["cases"]) == len(verdict["series"])


def test_what_is_written_fits_the_schema(runs: list[Path], history: Path, tmp_path: Path) -> None:
    """Also for a run of CI, one in which nothing was measured, and one with boot values."""
    ci = {"url": "https://github.example/acme/fw/actions/runs/17", "head_sha": "f" * 40}
    pull_request = store_run(tmp_path, f"{NAMES[0]}-a", healthy(), trigger="pr", ci=ci)
    nothing = store_run(tmp_path, f"{NAMES[0]}-b", [Fault("", "rig", 3, "the port is gone", "v1")])
    for run in (*runs, pull_request, nothing):
        keep_run(read_judged_run(run), history)
    assert keep(history, night(0))
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    lines = [json.loads(path.read_bytes()) for path in history.glob("*/*.json")]
    for line in lines:
        jsonschema.Draft202012Validator(schema).validate(line)
    assert len(lines) == 6
    assert [line["commit"] for line in lines if line["trigger"] == "pr"] == ["f" * 40]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate({**lines[0], "extra": 1})


def test_a_run_is_there_once_and_at_its_place(runs: list[Path], history: Path) -> None:
    """Entering it again replaces its file; the order is that of the runs, not of the entering."""
    for run in (runs[2], runs[0], runs[1], runs[0]):
        keep_run(read_judged_run(run), history)
    assert read_past(history).runs == tuple(summary_of(read_judged_run(run)) for run in runs)


def test_a_run_that_is_judged_again_replaces_its_figures(history: Path, tmp_path: Path) -> None:
    """The history says what the verdict says."""
    run = store_run(tmp_path, NAMES[0], healthy(31.0))
    keep_run(read_judged_run(run), history)
    journal = run / "records.jsonl"
    kept = [line for line in journal.read_text().splitlines() if '"board":"v1"' in line]
    journal.write_text("\n".join(kept) + "\n")
    rejudge(run)
    keep_run(read_judged_run(run), history)
    assert [run.outcome for run in read_past(history).runs] == ["pass"]


def test_a_run_without_verdict_is_refused(runs: list[Path], history: Path, tmp_path: Path) -> None:
    """Nothing is entered; the sentence says how to get a verdict."""
    run = RunDirectory.create(tmp_path / "out", run_info(run_id=NAMES[0]))
    with pytest.raises(ConfigError, match="hil gate"):
        keep_run(read_judged_run(run.path), history)
    assert not history.exists()


@pytest.mark.parametrize("rack", ["..", "../elsewhere", "/tmp/x", ".git"])
def test_a_rack_names_a_folder_of_the_history(tmp_path: Path, history: Path, rack: str) -> None:
    """run.json may be foreign: a name that leads elsewhere is refused, and nothing is written."""
    run = store_run(tmp_path / "out", NAMES[0], [Fault("", "rig", 3, "gone", "v1")], rack=rack)
    with pytest.raises(ConfigError, match="its name does not fit into the history"):
        keep_run(read_judged_run(run), history)
    assert not history.exists()


def test_waiting_for_another_process_has_an_end(tmp_path: Path) -> None:
    """Who holds the folder is named by process; when it lets go, the next one gets it."""
    with locked(tmp_path):
        with pytest.raises(RigError) as caught, locked(tmp_path, timeout_s=0.0):
            raise AssertionError("two hold it")
        for word in (str(tmp_path), f"process {os.getpid()} ("):
            assert word in str(caught.value)
    with locked(tmp_path, timeout_s=0.0):
        pass


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exit_code": 77}, "exit_code 77 is none of ours"),
        ({"exit_code": "0"}, "exit_code is '0'"),
        ({"outcome": "regressed"}, "exit_code 0 contradicts the outcome 'regressed'"),
        ({"outcome": "fine"}, "outcome is 'fine'"),
        ({"series": None}, "series is None; expected a list"),
        ({"series": [1]}, "series[0] is 1; expected an object"),
        ({"warnings": [1]}, "warnings[0] is 1; expected text"),
        ({"extra": 1}, "extra is an unknown key"),
        ({"faults": [{"owner": "rig"}]}, "faults[0]."),
        ({"value": "fast"}, "series[0].value is 'fast'"),
        ({"limit": True}, "series[0].limit is True; expected a number or null"),
        ({"unit": "furlongs"}, "the unit 'furlongs' of virtual/"),
    ],
)
def test_a_verdict_that_is_none_names_file_and_key(
    runs: list[Path], tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    """Not a traceback from whichever report stumbles over it, but what is wrong and how to get it right."""
    stored = json.loads((runs[0] / "verdicts.json").read_text())
    where = stored["series"][0] if changes.keys() <= stored["series"][0].keys() - {"outcome"} else stored
    where.update(changes)
    path = tmp_path / "verdicts.json"
    path.write_text(json.dumps(stored))
    with pytest.raises(ConfigError, match=re.escape(f"{path}: ")) as caught:
        read_verdict(path)
    assert f"({words}" in str(caught.value)
    assert f"hil gate {tmp_path}" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"git": None}, "git is None; expected an object"),
        ({"git": {"commit": None, "dirty": False}}, "git.commit is None; expected text"),
        ({"git": {"commit": ""}}, "git.dirty is missing"),
        ({"ci": {"colour": 1}}, "ci.colour is an unknown key"),
        ({"colour": 1}, "colour is an unknown key"),
        ({"firmware": {"esp32": 1}}, "firmware.esp32 is 1; expected an object"),
        ({"boards": ["v1"]}, "boards[0] is 'v1'; expected an object"),
        ({"plan": {"v1": {"publish/qos=1": 0}}}, "plan.v1.publish/qos=1 is 0; expected an integer >= 1"),
        ({"legs": True}, "legs is True; expected an integer"),
        ({"trigger": "weekly"}, "trigger is 'weekly'; expected one of local, pr, nightly"),
        ({"product": "A B"}, "product is 'A B'; expected text matching regex "),
        ({"started_utc": 1}, "started_utc is 1; expected text"),
        ({"started_utc": "today"}, "started_utc is 'today'; expected a date and time"),
        ({"schema": 0}, "its schema is 0, this program reads 1"),
    ],
)
def test_a_run_json_that_no_report_can_use_is_named(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    """Checked where it is read, so every report and command says the same."""
    run = RunDirectory.create(tmp_path, run_info())
    path = run.path / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ConfigError) as caught:
        run.read_info()
    assert str(caught.value).startswith(f"{path}: {words}")
    assert "Next: correct it" in str(caught.value)


def line(run_id: str, trigger: str, day: int) -> dict[str, Any]:
    return {"run_id": run_id, "trigger": trigger, "started_utc": f"2026-11-{day:02}T00:00:00Z"}


def test_runs_are_shown_against_those_of_their_purpose() -> None:
    """Nightly against nightly, a pull request against nightly, and never against what came later."""
    lines = [line("n1", "nightly", 1), line("l1", "local", 2), line("p1", "pr", 3), line("n2", "nightly", 4)]

    def shown(own: dict[str, Any]) -> list[str]:
        return [item["run_id"] for item in with_runs(comparable(lines, [own]), [own])]

    assert shown(line("p2", "pr", 5)) == ["n1", "n2", "p2"]
    assert shown(line("p1", "pr", 3)) == ["n1", "p1"]
    assert shown(line("n2", "nightly", 4)) == ["n1", "n2"]
    assert shown(line("l2", "local", 6)) == ["l1", "l2"]
