# SPDX-License-Identifier: Apache-2.0
"""The gate on two virtual boards, by real runs of `hil run --base`: caught, passed, replayed."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hil.boards.rack.noise import NoiseSettings
from hil.history.files import read_past
from hil.history.judgements import unchanged_runs
from hil.metrics.words import in_words
from hil.virtual.noise import Noise, load_noise_profile
from tests.gate.gate_lab import METRIC, GateLab, Judged, open_gate_lab, suites
from tests.host_builds import build_variant
from tests.lab import of_type
from tests.variants import renamed

pytestmark = [pytest.mark.slow, pytest.mark.needs_real_time]

COUNT = 40
INTERVAL_US, INTERVAL_OF_SLOWER_US = 10_000, 30_000  # so that hardly a message waits for another
HALF = 1.4  # of what is planted: 20 ms, where a message takes 7 ms
RUNS = 3  # until one is decided
# A busy machine's boots differ by a quarter, and one of them may stall: five of each build on a board are to
# decide even so. Two looks: after 3 + 3 and 5 + 5 boots.
TOLERANCE = 0.9
POLICY = "policy:\n  max_boots: 10\n  blind_below: 10\n  alpha: 0.001"


@contextmanager
def open_lab(interval_us: int) -> Iterator[GateLab]:
    """Make a lab for as long as it is used."""
    folder = Path(tempfile.mkdtemp(prefix="hil-lab-"))
    yield open_gate_lab(folder, 2, suites((128,), COUNT, interval_us), tolerance=TOLERANCE)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def gate_lab() -> Iterator[GateLab]:
    with open_lab(INTERVAL_US) as lab:
        publish = lab.thresholds / "publish.yaml"
        text, found = re.subn(r"^policy:\n  alpha: 0\.01\b", POLICY, publish.read_text(), flags=re.MULTILINE)
        assert found == 1
        publish.write_text(text)
        yield lab


@pytest.fixture(scope="module")
def unchanged(gate_lab: GateLab, virtual_firmware: Path) -> Judged:
    """A run of a firmware of other bytes, and of the same behaviour."""
    same = renamed(virtual_firmware, "0.0.0-same")
    return decided(lambda: gate_lab.compare(same, virtual_firmware))


@pytest.fixture(scope="module")
def slower(virtual_firmware: Path) -> Iterator[Judged]:
    """A run of a firmware whose messages take 20 ms longer, under simulated noise."""
    with open_lab(INTERVAL_OF_SLOWER_US) as lab:
        lab.set_noise("{profile: quiet, seed: 1, session: slower}")
        yield decided(lambda: lab.compare(build_variant("slow_publish"), virtual_firmware))


def decided(compare: Callable[[], Judged]) -> Judged:
    """Return the first run that is decided: what a busy host leaves undecided says nothing of the gate."""
    runs = (compare() for _ in range(RUNS))
    found = next((run for run in runs if run.verdict["outcome"] != "undecided"), None)
    return found or pytest.fail(f"{RUNS} runs were left undecided")


def entries(judged: Judged) -> list[dict[str, Any]]:
    return lines_of(judged.path)


def lines_of(run: Path) -> list[dict[str, Any]]:
    lines = (run / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_an_unchanged_firmware_passes(unchanged: Judged) -> None:
    """Other bytes, same behaviour: exit 0, one comparison of both boards, from boots of both images.

    A busy host may favour one of them: *improved* is a pass too.
    """
    assert unchanged.exit_code == 0, unchanged.said
    (one,) = unchanged.blocking
    assert (one["metric"], one["boards"]) == (METRIC, ["b1", "b2"])
    assert one["outcome"] in ("pass", "improved")
    assert min(one["candidate_boots"], one["other_boots"]) >= 2
    records = of_type(entries(unchanged), "record")
    first, *rest = entries(unchanged)
    assert first["type"] == "comparison"
    assert not of_type(rest, "comparison")
    digests = {"candidate": first["candidate_sha256"], "base": first["other_sha256"]}
    assert len(set(digests.values())) == 2
    for board in ("b1", "b2"):
        own = [record for record in records if record["board"] == board]
        assert [record["boot_index"] for record in own] == list(range(len(own)))
        assert {record["role"] for record in own} == {"candidate", "base"}
        assert [record["firmware_sha256"] for record in own] == [digests[record["role"]] for record in own]


def test_the_builds_lie_in_both_slots(unchanged: Judged) -> None:
    """In the first look one board has the candidate in ota_0 and the other one in ota_1; in the second look,
    where there is one, each comes to have it in the other slot."""
    journal = entries(unchanged)
    (first, second, *_more) = (sum(look) for look in journal[0]["looks"])
    found = []
    for board in ("b1", "b2"):
        own = [record for record in of_type(journal, "record") if record["board"] == board]
        lying = [
            record["environment"]["rig"]["slot"][-1] == ("0" if record["role"] == "candidate" else "1")
            for record in own
        ]
        assert set(lying[:first]) == {lying[0]}
        assert not lying[first:second] or (not lying[0]) in lying[first:second]
        found.append(lying[0])
    assert sorted(found) == [False, True]


def test_the_run_says_with_what_it_was_compared(unchanged: Judged) -> None:
    """run.json names role, image and what is known of the rack, the terminal the look."""
    whole = json.loads((unchanged.path / "run.json").read_text())
    assert (whole["standing"]["state"], whole["standing"]["needed"]) == ("advisory", 200)
    info = whole["compared"]
    assert info["role"] == "base"
    assert info["firmware"]["virtual-esp32"]["sha256"] == entries(unchanged)[0]["other_sha256"]
    assert re.search(r"look 1 of \d+: booting: base", unchanged.said)


def test_a_slower_firmware_is_caught(slower: Judged) -> None:
    """20 ms more latency: exit 1, and the sentence on the terminal names the metric."""
    assert slower.exit_code == 1, slower.said
    (one,) = slower.blocking
    assert one["outcome"] == "regressed"
    assert one["change"] > HALF  # how near it comes to 20 ms depends on who else uses this machine
    assert METRIC.removesuffix("_us") in one["sentence"]
    assert "REGRESSED" in slower.said
    assert in_words(METRIC, "publish") in " ".join(slower.said.split())


def test_simulated_noise_is_in_every_record_and_on_the_terminal(slower: Judged, unchanged: Judged) -> None:
    """A run under noise says in each record what was drawn for its boot, in run.json and at its start that
    it is simulated; another run says nothing of it."""
    settings = NoiseSettings("quiet", seed=1, session="slower")
    drawn = Noise(settings, load_noise_profile("quiet"), slower.path.name)
    for record in of_type(entries(slower), "record"):
        group = record["environment"]["noise"]
        assert group["simulated"] is True
        assert group == drawn.environment(record["board"], record["boot_index"])
    assert json.loads((slower.path / "run.json").read_text())["noise"]["simulated"] is True
    assert "virtual rack: profile quiet" in " ".join(slower.said.split())
    assert not any("noise" in record["environment"] for record in of_type(entries(unchanged), "record"))
    assert "imulated" not in unchanged.said


def test_the_same_bytes_pass_without_a_boot(gate_lab: GateLab, virtual_firmware: Path) -> None:
    """Identical images: nothing is measured, and the comparison is passed."""
    judged = gate_lab.compare(virtual_firmware, virtual_firmware)
    assert judged.exit_code == 0, judged.said
    assert not of_type(entries(judged), "record")
    assert not (judged.path / "flash").exists()
    assert "nothing is measured" in judged.said
    assert {entry["cause"] for entry in of_type(entries(judged), "not-run")} == {"identical"}
    assert [one["identical"] for one in of_type(entries(judged), "comparison")] == [True]
    assert set(judged.outcomes()) <= {"pass"}
    assert judged.verdict["outcome"] == "pass"


@pytest.mark.heavy
def test_a_rack_qualifies_by_unchanged_firmware(gate_lab: GateLab, virtual_firmware: Path) -> None:
    """`hil rack qualify --runs 1` measures a firmware against itself, in turns as any base, under simulated
    noise. It leaves one line, and blocks nothing; one judgement is advisory: exit 4. Judgements under
    simulated noise are another rack's."""
    lab = gate_lab.lab
    kept = lab.folder / "history"
    fixed = ("--rack", str(lab.rack), "--out", str(lab.out), "--history", str(kept))
    measured = ("--firmware", str(virtual_firmware), "--thresholds", str(gate_lab.thresholds))
    gate_lab.set_noise("{profile: quiet, seed: 3}")
    try:
        done = lab.hil("rack", "qualify", *fixed, *measured, "--runs", "1", "--budget", "1")
    finally:
        gate_lab.set_noise("")
    assert done.returncode == 4, done.stdout
    assert "Run 1 of 1" in done.stdout
    assert "--undecided-status" not in done.stdout  # its status is its own, whatever is undecided
    said = done.stdout.partition("rack lab (virtual, simulated noise quiet)")[2]
    assert "advisory: 1 of 200 " in said
    assert max(map(len, said.splitlines())) <= 80
    runs = unchanged_runs(read_past(kept).runs)
    assert [(run.judged.noise, len(run.judged.judgements)) for run in runs] == [("quiet", 1)]
    folder = lab.out / runs[0].run_id
    records = of_type(lines_of(folder), "record")
    assert {record["role"] for record in records} == {"candidate", "base"}
    assert len({record["firmware_sha256"] for record in records}) == 1
    assert "standing" not in json.loads((folder / "run.json").read_text())
    assert "compared with itself" in (folder / "summary.md").read_text()
    assert gate_lab.replay(folder).returncode == 0
    told = json.loads(lab.hil("rack", "qualify", *fixed, "--json").stdout)
    assert (told["state"], told["judgements"], told["nature"]["noise"]) == ("advisory", 0, "")
