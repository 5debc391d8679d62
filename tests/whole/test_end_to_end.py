# SPDX-License-Identifier: Apache-2.0
"""From build to verdict on virtual boards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from hil.thresholds import load_all
from tests.firmware.kernel_rig import board
from tests.host_builds import PLAIN, build_programs, build_variant
from tests.in_process import hil
from tests.lab import ROOT, Lab, of_type, run

pytestmark = pytest.mark.slow

NewLab = Callable[[int], Lab]


def test_a_run_measures_and_passes(new_lab: NewLab) -> None:
    """Two boards, one case: exit 0, a record of each boot, a verdict, a summary, logs without secrets. With
    --boots 2 a board measures in both its boots; gate and report take them together. `hil gate` gives the
    verdict again from disk, byte for byte, with the same exit code."""
    lab = new_lab(2)
    done = lab.run("--boots", "2", report=True)
    assert done.returncode == 0, done.stdout
    assert f" {lab.good_outcome()}: " in done.stdout
    records = of_type(lab.entries(), "record")
    assert sorted(record["board"] for record in records) == ["b1", "b1", "b2", "b2"]
    assert {record["kind"] for record in records} == {"virtual"}
    assert all(len(record["columns"]["done_us"]) == 65 for record in records)
    assert all(
        {"device", "host", "rig", "air", "broker", "access_point"} <= set(r["environment"]) for r in records
    )
    latest = lab.out / "latest"
    run_info = json.loads((latest / "run.json").read_text())
    assert run_info["firmware"]["virtual-esp32"]["sha256"] == records[0]["firmware_sha256"]
    console = (latest / "console" / "b1.log").read_text()
    assert "provision client_key_pem 0 ***" in console
    assert "PRIVATE KEY" not in console
    assert "provision mqtt_password 0 ***" in console
    assert not list(latest.rglob("*.key"))
    assert not list(latest.rglob("mosquitto-passwords*"))
    assert not list(lab.temporary.glob("hil-secrets-*"))
    assert not (latest / "peer").exists()  # no bench of this run has a peer
    lab.await_nothing_left()
    assert re.findall(r"b1 \[(\d)/2\b[^]]*\] booting", done.stdout) == ["0", "1"], done.stdout
    assert [record["boot_index"] for record in records if record["board"] == "b1"] == [0, 1]
    written = (latest / "verdicts.json").read_bytes()
    verdict = json.loads(written)
    assert {(item["boots"], item["samples"]) for item in verdict["series"]} == {(2, 120)}
    assert console.count(" H proto_min=") >= 2
    assert (lab.out / "report" / "index.html").exists()
    replayed = hil("gate", latest, env=lab.env)
    assert replayed.returncode == verdict["exit_code"]
    assert "byte for byte" in replayed.stdout
    assert (latest / "verdicts.json").read_bytes() == written


@pytest.mark.needs_real_time
def test_a_slow_publish_breaks_the_limit(new_lab: NewLab) -> None:
    """20 ms more in the publish path: exit 1, and the summary names metric, amount, limit and board."""
    lab = new_lab(1)
    lab.firmware = build_variant("slow_publish")
    done = lab.run()
    assert done.returncode == 1, done.stdout
    summary = (lab.out / "latest" / "summary.md").read_text()
    for text, name in ((done.stdout, "publish latency p95"), (summary, "publish_latency_p95")):
        assert name in text
        assert "b1" in text
        assert "25 ms" in text
    assert "REGRESSED" in done.stdout.upper()


def test_a_panic_is_the_firmwares(new_lab: NewLab) -> None:
    """A crash in the middle of a case: exit 1, the panic quoted, no record, not mistaken for the rig's."""
    lab = new_lab(1)
    lab.firmware = build_variant("panicking_publish")
    done = lab.run()
    assert done.returncode == 1, done.stdout
    (fault,) = of_type(lab.entries(), "fault")
    assert (fault["owner"], fault["board"]) == ("firmware", "b1")
    assert "Guru Meditation" in fault["sentence"]
    assert not of_type(lab.entries(), "record")


def test_a_report_that_fails_does_not_change_the_verdict(new_lab: NewLab) -> None:
    """Junk in a history: the verdict stays, its summary is on screen, and the warning says the way out."""
    lab = new_lab(1)
    history = lab.out / "history" / "allure.jsonl"
    history.parent.mkdir()
    history.write_bytes(b"\xff\xfejunk")
    done = lab.run(report=True)
    assert done.returncode == 0, done.stdout
    said = " ".join(done.stdout.split())
    in_order = ("Building the report", "? report: ", "sed -i 1d", "Summary ", f" {lab.good_outcome()}: ")
    places = [said.index(words) for words in in_order]
    assert places == sorted(places)
    assert "Traceback" not in said


def test_only_what_pytest_kept_is_planned(new_lab: NewLab) -> None:
    """`python -m pytest hil/benches --rack …` measures too, an item a board and case. `-k` leaves boards and
    cases out of the run, with no lease and no record, and the verdict and its exit code say so."""
    lab = new_lab(2)
    done = run(lab.pytest("--hil-suite", "nightly", "-k", "b2 and mtls"), env=lab.env)
    assert done.returncode == 4, done.stdout
    assert "planned cases not measured" in done.stdout
    assert "2 passed" in done.stdout
    records, left_out = of_type(lab.entries(), "record"), of_type(lab.entries(), "not-run")
    assert {(e["board"], e["parameters"]["transport"]) for e in records} == {("b2", "mtls")}
    assert {entry["board"] for entry in left_out} == {"b1", "b2"}
    assert {entry["cause"] for entry in left_out} == {"deselected"}
    run_info = json.loads((lab.out / "latest" / "run.json").read_text())
    assert [board["id"] for board in run_info["boards"]] == ["b2"]


@pytest.mark.heavy
def test_an_undecided_run_ends_with_4_or_with_what_was_asked_for(new_lab: NewLab) -> None:
    """Too few samples decide nothing: status 4, or 0 where CI goes on by the policy; verdicts.json says 4."""
    lab = new_lab(1)
    limits = lab.folder / "thresholds" / "publish.yaml"
    limits.write_text(limits.read_text().replace("min_samples: 40", "min_samples: 4000"))
    done = lab.run("--undecided-status", "4")
    assert done.returncode == 4, done.stdout
    assert "? UNDECIDED: " in done.stdout
    assert lab.hil("gate", str(lab.out / "latest")).returncode == 4
    neutral = lab.run()
    assert neutral.returncode == 0, neutral.stdout
    assert "undecided is no failure" in neutral.stdout
    verdict = json.loads((lab.out / "latest" / "verdicts.json").read_text())
    assert (verdict["outcome"], verdict["exit_code"]) == ("undecided", 4)
    limits.write_text(limits.read_text().replace("on_undecided: neutral", "on_undecided: fail"))
    assert lab.run().returncode == 4


LEAVES = '"$@" 2>&1 | head -n 1 >/dev/null; exit "${PIPESTATUS[0]}"'
CLOSED = '"$@" >&-'


@pytest.mark.parametrize(
    ("cause", "outcome", "heading", "script"),
    [("sources", "no-baseline", "LIMITS ONLY", LEAVES), ("unknown", "undecided", "UNDECIDED", CLOSED)],
    ids=["a-reader-that-leaves", "a-closed-stdout"],
)
def test_a_run_without_a_base_keeps_why_whoever_reads_it(
    new_lab: NewLab, cause: str, outcome: str, heading: str, script: str
) -> None:
    """Journal and verdict have the cause: limits only, or undecided. A reader that leaves, or a
    stdout that is closed from the start, does not change the verdict's own exit code."""
    lab = new_lab(1)
    why = lab.folder / "failure.json"
    why.write_text(json.dumps({"schema": 1, "cause": cause, "sentence": "x.c:1: error"}))
    command = lab.command("--no-base-because", str(why))
    assert run(["bash", "-c", script, "-", *command], env=lab.env).returncode == 0
    assert of_type(lab.entries(), "record")
    verdict = json.loads((lab.out / "latest" / "verdicts.json").read_text())
    assert verdict["no_base"] == cause
    (entry,) = of_type(lab.entries(), "no-base")
    assert (entry["cause"], entry["reason"]) == (cause, "x.c:1: error")
    if verdict["outcome"] != outcome:  # a busy host leaves a limit undecided
        outcome, heading = "undecided", "UNDECIDED"
    assert verdict["outcome"] == outcome
    assert f"# {heading}" in (lab.out / "latest" / "summary.md").read_text()


def test_the_thresholds_domains_are_the_firmwares() -> None:
    """Every parameter's default and domain in thresholds/ is what the firmware itself says."""
    with board(build_programs(PLAIN, "hil-firmware.elf") / "hil-firmware.elf") as virtual:
        for bench, thresholds in load_all(ROOT / "thresholds").items():
            if "virtual" not in thresholds.kinds:
                continue
            listed = virtual.session.command("list", bench).fields["parameters"]
            expected = [
                f"{name}:{each.default}:{'|'.join(each.choices) or f'{each.minimum}..{each.maximum}'}"
                for name, each in thresholds.parameters.items()
            ]
            assert sorted(listed.split(",")) == sorted(expected or [""]), bench
