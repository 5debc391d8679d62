"""From build to verdict on virtual boards, and what is left when something is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hil.store import RunDirectory
from hil.virtual.board.client import BoardControl
from reports.history import locked
from tests.host_builds import PLAIN, build_programs, build_variant
from tests.lab import ROOT, Lab, Process, Running, descendants, of_type, run

pytestmark = pytest.mark.slow

NewLab = Callable[[int], Lab]
MEASURING = r"b1 \[0/1\] measuring"


@pytest.fixture(scope="module")
def slow_firmware() -> Path:
    return build_variant("slow_publish")


@pytest.fixture(scope="module")
def panicking_firmware() -> Path:
    return build_variant("panicking_publish")


@pytest.fixture
def measuring(new_lab: NewLab) -> Iterator[tuple[Lab, Running]]:
    """A run of a long case on one board, in the middle of measuring."""
    lab = new_lab(1)
    running = lab.start("--suite", "pr")
    try:
        running.await_line(MEASURING)
        yield lab, running
    finally:
        running.close()
        lab.await_nothing_left()


def find(processes: list[Process], word: str) -> Process:
    found = [process for process in processes if word in process.name]
    assert found, f"no {word!r} among {[process.name for process in processes]}"
    return found[-1]


def test_a_run_measures_and_passes(new_lab: NewLab) -> None:
    """Two boards, one case: exit 0, one record each, a verdict, a summary, logs without secrets."""
    lab = new_lab(2)
    done = lab.run()
    assert done.returncode == 0, done.stdout
    assert "PASS" in done.stdout
    records = of_type(lab.entries(), "record")
    assert sorted(record["board"] for record in records) == ["b1", "b2"]
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


def test_several_boots_are_one_series(new_lab: NewLab) -> None:
    """With --boots 2 a board measures each case in both its boots; gate and report take them together."""
    lab = new_lab(1)
    done = lab.run("--boots", "2", "--report")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("b1 [0/2] booting") == done.stdout.count("b1 [1/2] booting") == 1, done.stdout
    records = of_type(lab.entries(), "record")
    assert [record["boot_index"] for record in records] == [0, 1]
    verdicts = json.loads((lab.out / "latest" / "verdicts.json").read_text())
    assert {item["boots"] for item in verdicts["series"]} == {2}
    assert {item["samples"] for item in verdicts["series"]} == {120}
    (log,) = (lab.out / "latest" / "console").iterdir()
    assert log.read_text().count(" H proto_min=") >= 2
    assert (lab.out / "report" / "index.html").exists()
    lab.await_nothing_left()


def test_the_gate_replays_the_verdict(new_lab: NewLab) -> None:
    """`hil gate` gives the verdict again from disk, byte for byte, with the same exit code."""
    lab = new_lab(1)
    assert lab.run().returncode == 0
    verdict = (lab.out / "latest" / "verdicts.json").read_bytes()
    done = lab.hil("gate", str(lab.out / "latest"))
    assert done.returncode == 0
    assert "the same verdict, byte for byte" in done.stdout
    assert (lab.out / "latest" / "verdicts.json").read_bytes() == verdict


def test_pytest_alone_gives_the_same(new_lab: NewLab) -> None:
    """`python -m pytest hil/benches --rack …` measures too: an item a board and case, the same exit code."""
    lab = new_lab(1)
    done = run([*PYTEST, *lab.arguments()], env=lab.env)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert len(of_type(lab.entries(), "record")) == 1


PYTEST = [sys.executable, "-m", "pytest", "hil/benches", "-p", "no:cacheprovider"]


def test_a_slow_publish_breaks_the_limit(new_lab: NewLab, slow_firmware: Path) -> None:
    """20 ms more in the publish path: exit 1, and the summary names metric, amount, limit and board."""
    lab = new_lab(1)
    lab.firmware = slow_firmware
    done = lab.run()
    assert done.returncode == 1, done.stdout
    summary = (lab.out / "latest" / "summary.md").read_text()
    for text in (done.stdout, summary):
        assert "publish_latency_p95" in text
        assert "b1" in text
        assert "25 ms" in text
    assert "REGRESSED" in done.stdout.upper()


def test_a_panic_is_the_firmwares(new_lab: NewLab, panicking_firmware: Path) -> None:
    """A crash in the middle of a case: exit 1, the panic quoted, no record, not mistaken for the rig's."""
    lab = new_lab(1)
    lab.firmware = panicking_firmware
    done = lab.run()
    assert done.returncode == 1, done.stdout
    (fault,) = of_type(lab.entries(), "fault")
    assert (fault["owner"], fault["board"]) == ("firmware", "b1")
    assert "Guru Meditation" in fault["sentence"]
    assert not of_type(lab.entries(), "record")


def test_a_second_run_is_told_who_holds_the_board(measuring: tuple[Lab, Running]) -> None:
    """Exit 3 at once, naming process and run; the first run is not disturbed."""
    lab, running = measuring
    done = lab.run()
    assert done.returncode == 3
    assert "board b1 of rack lab is held by" in done.stdout
    assert f"pid {running.process.pid}" in done.stdout
    assert running.process.poll() is None
    status = lab.hil("rack", "status", "--rack", str(lab.rack), "--out", str(lab.out)).stdout
    assert f"pid {running.process.pid}" in status


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_in_order(
    measuring: tuple[Lab, Running], number: signal.Signals, code: int
) -> None:
    """Ctrl-C and SIGTERM: exit 130 and 143, nothing left, no secrets, the journal says what is missing."""
    lab, running = measuring
    family = descendants(running.process.pid)
    running.send(number)
    assert running.wait() == code
    lab.await_nothing_left(*family)
    assert not list(lab.temporary.glob("hil-secrets-*"))
    journal = RunDirectory.latest(lab.out).read()
    assert not journal.torn
    assert [entry["type"] for entry in lab.entries()] == ["not-run"]
    assert "Interrupted" in running.said()


def test_a_report_that_fails_does_not_change_the_verdict(new_lab: NewLab) -> None:
    """Junk in a history: the run passes, its summary is on the screen, and the warning says the way out."""
    lab = new_lab(1)
    history = lab.out / "history" / "allure.jsonl"
    history.parent.mkdir()
    history.write_bytes(b"\xff\xfejunk")
    done = lab.run("--report")
    assert done.returncode == 0, done.stdout
    said = " ".join(done.stdout.split())
    assert said.index(" PASS ") < said.index("Building the report") < said.index("? report: ")
    assert said.index("sed -i 1d") < said.index("Summary ") < said.index("Replay hil gate")
    assert "Traceback" not in said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_the_report_is_built_keeps_the_verdict(
    new_lab: NewLab, number: signal.Signals, code: int
) -> None:
    """What was judged is said and on disk before the report begins; no traceback, the documented code."""
    lab = new_lab(1)
    with locked(lab.out):  # as another build would; the run waits for it
        running = lab.start("--report")
        try:
            running.await_line("Building the report")
            running.send(number)
            assert running.wait() == code, running.said()
        finally:
            running.close()
    said = running.said()
    assert "Traceback" not in said
    assert said.index(" PASS ") < said.index("Interrupted. The verdict is in ")
    assert "hil report build" in said
    assert json.loads((lab.out / "latest" / "verdicts.json").read_text())["outcome"] == "pass"
    assert (lab.out / "latest" / "summary.md").read_text().startswith("# PASS")
    assert not list(lab.out.glob(".report-*"))
    lab.await_nothing_left()


def test_a_signal_after_the_end_is_no_traceback(new_lab: NewLab) -> None:
    """SIGTERM between the last word and the end of the process: 143, as documented."""
    lab = new_lab(1)
    plugin = "import os, signal\ndef pytest_unconfigure(): os.kill(os.getpid(), signal.SIGTERM)\n"
    (lab.folder / "late_signal.py").write_text(plugin)
    env = {**lab.env, "PYTHONPATH": str(lab.folder)}
    done = run([*PYTEST, *lab.arguments(), "-p", "late_signal", "-k", "no such case"], env=env)
    assert done.returncode == 143, done.stdout
    assert "Traceback" not in done.stdout


def test_kill_9_of_the_run_leaves_nothing(measuring: tuple[Lab, Running]) -> None:
    """After kill -9 of the run the kernel takes the rest; the next run finds boards, ports and lock free."""
    lab, running = measuring
    family = descendants(running.process.pid)
    assert len(family) >= 4  # supervisor, air, board, broker
    running.send(signal.SIGKILL)
    running.wait()
    lab.await_nothing_left(*family)
    assert RunDirectory.latest(lab.out).read().entries == ()
    assert lab.run().returncode == 0


@pytest.mark.parametrize(
    ("victim", "words"),
    [
        ("hil.virtual.board", ["board b1", "killed by signal 9"]),
        ("hil-air", ["air", "killed by signal 9"]),
        ("mosquitto", ["broker", "killed by signal 9"]),
        ("hil.virtual.supervisor", ["supervisor"]),
    ],
)
def test_kill_9_of_a_part_is_the_rigs(measuring: tuple[Lab, Running], victim: str, words: list[str]) -> None:
    """A part that dies in the middle: exit 3, the sentence names it; the next run works."""
    lab, running = measuring
    family = descendants(running.process.pid)
    os.kill(find(family, victim).pid, signal.SIGKILL)
    assert running.wait() == 3, running.said()
    (fault,) = of_type(lab.entries(), "fault")
    assert fault["owner"] == "rig"
    for word in words:
        assert word in fault["sentence"]
    lab.await_nothing_left(*family)
    assert lab.run().returncode == 0


@pytest.mark.parametrize(
    ("fault", "value", "code", "words"),
    [
        ("disconnect", "now", 3, ["console of board", "was lost"]),
        ("brownout", 1, 3, ["browned out"]),
        ("panic", "LoadProhibited", 1, ["Guru Meditation", "LoadProhibited"]),
    ],
)
def test_a_fault_of_a_board_has_its_owner(
    new_lab: NewLab, fault: str, value: object, code: int, words: list[str]
) -> None:
    """What happens to one board in the middle of a case ends that board only, with the owner's exit code."""
    lab = new_lab(2)
    running = lab.start("--suite", "pr or quick")
    try:
        line = running.await_line(r"b\d \[1/2\] measuring: publish count=4000")
        board, other = (line[:2], "b1" if line[:2] == "b2" else "b2")
        state_dir = lab.out / "virtual" / "lab" / "b1"
        BoardControl(state_dir / f"{board}.sock").fault(fault, value)
        running.await_line(rf"{board} \[2/2\] failed")
        running.await_line(rf"{other} \[1/2\] measuring: publish count=4000")
        entries = lab.entries()
    finally:
        running.send(signal.SIGINT)
        running.wait()
        lab.await_nothing_left()
    (found,) = of_type(entries, "fault")
    assert (found["board"], found["exit_code"]) == (board, code)
    for word in words:
        assert word in found["sentence"]


def test_waiting_for_a_board_and_releasing_it(measuring: tuple[Lab, Running]) -> None:
    """`hil rack release` refuses while a run is alive, --force ends it; a run that waits gets the boards."""
    lab, running = measuring
    files = ("--rack", str(lab.rack), "--out", str(lab.out))
    refused = lab.hil("rack", "release", *files)
    assert refused.returncode == 3
    assert "which is alive" in refused.stdout
    waiting = Running(lab.command("--wait", "60"), lab.folder / "waiting.txt", lab.env)
    try:
        waiting.await_line("board b1 of rack lab is held by")
        lab.hil("rack", "release", "--force", *files)
        assert running.wait() == 143
        assert waiting.wait() == 0, waiting.said()
    finally:
        waiting.close()


def test_virtual_up_keeps_a_rack_that_runs_use(new_lab: NewLab) -> None:
    """`hil virtual up` says how to reach each board; a run measures there; Ctrl-C ends it."""
    lab = new_lab(1)
    files = ("--rack", str(lab.rack), "--out", str(lab.out))
    argv = [sys.executable, "-m", "hil", "virtual", "up", *files]
    up = Running(argv, lab.folder / "up.txt", lab.env)
    try:
        up.await_line(r"miniterm .* rfc2217://127.0.0.1:\d+ 921600")
        assert lab.hil("board", "power", "b1", "cycle", *files).stdout == "b1: power cycle\n"
        done = lab.run()
        assert done.returncode == 0, done.stdout
        family = descendants(up.process.pid)
        up.send(signal.SIGINT)
        assert up.wait() == 130
        lab.await_nothing_left(*family)
    finally:
        up.close()


def test_two_runs_share_a_rack_that_is_up(new_lab: NewLab) -> None:
    """Two runs on other boards of one rack take turns, each in the air that it asked for; both pass."""
    lab = new_lab(2)
    files = ("--rack", str(lab.rack), "--out", str(lab.out))
    up = Running([sys.executable, "-m", "hil", "virtual", "up", *files], lab.folder / "up.txt", lab.env)
    wanted = {"b1": "lab", "b2": "perfect"}
    runs = []
    try:
        up.await_line("miniterm")
        for board, profile in wanted.items():
            command = lab.command("--suite", "nightly", "--board", board, "--profile", profile)
            runs.append(Running(command, lab.folder / f"{board}.txt", lab.env))
        codes = [one.wait() for one in runs]
        assert codes == [0, 0], "\n".join(one.said() for one in runs)
        folders = [path.parent for path in lab.out.glob("*/records.jsonl") if not path.parent.is_symlink()]
        journals = [(folder / "records.jsonl").read_text() for folder in folders]
        records = [json.loads(line) for journal in journals for line in journal.splitlines()]
        assert len(records) == 8
        for record in records:
            assert record["environment"]["access_point"]["profile"] == wanted[record["board"]]
            assert (fastest_us(record) < 4000) == (wanted[record["board"]] == "perfect")
        ports = {record["board"]: record["environment"]["broker"]["tcp_port"] for record in records}
        assert len(set(ports.values())) == 2
        assert not [folder for folder in folders if (folder / "rack").exists()]  # not the runs' own logs
    finally:
        for one in (*runs, up):
            one.send(signal.SIGINT)
            one.wait()
    lab.await_nothing_left()


def fastest_us(record: dict[str, Any]) -> int:
    columns: dict[str, list[int]] = record["columns"]
    return min(done - sent for done, sent in zip(columns["done_us"], columns["sent_us"], strict=True))


def test_only_what_pytest_kept_is_planned(new_lab: NewLab) -> None:
    """`-k` leaves boards and cases out of the run: no lease, no record, no "not run" for them."""
    lab = new_lab(2)
    done = run([*PYTEST, *lab.arguments("--suite", "nightly"), "-k", "b2 and mtls"], env=lab.env)
    assert done.returncode == 0, done.stdout
    assert {entry["type"] for entry in lab.entries()} == {"record"}
    assert {(e["board"], e["parameters"]["transport"]) for e in lab.entries()} == {("b2", "mtls")}
    run_info = json.loads((lab.out / "latest" / "run.json").read_text())
    assert [board["id"] for board in run_info["boards"]] == ["b2"]


def test_a_reader_that_leaves_does_not_change_the_verdict(new_lab: NewLab) -> None:
    """`hil run | head -1`, and a stdout that is closed from the start: the verdict's own exit code."""
    lab = new_lab(1)
    script = '"$@" 2>&1 | head -n 1 >/dev/null; exit "${PIPESTATUS[0]}"'
    assert run(["bash", "-c", script, "-", *lab.command()], env=lab.env).returncode == 0
    assert of_type(lab.entries(), "record")
    assert run(["bash", "-c", '"$@" >&-', "-", *lab.command()], env=lab.env).returncode == 0
    assert "PASS" in (lab.out / "latest" / "summary.md").read_text().upper()


def test_the_thresholds_domains_are_the_firmwares() -> None:
    """Every parameter's domain in thresholds/ is what the firmware itself says it accepts."""
    from hil.thresholds import load_all

    elf = build_programs(PLAIN, "hil-firmware.elf") / "hil-firmware.elf"
    for bench, thresholds in load_all(ROOT / "thresholds").items():
        for name, parameter in thresholds.parameters.items():
            said = ask(elf, f"run {bench} {name}={'no-such' if parameter.choices else 2**62}")
            expected = "|".join(parameter.choices) or f"{parameter.minimum}..{parameter.maximum}"
            assert f"key={name} allowed={expected}" in said, f"{bench}.{name}: {said}"


def ask(elf: Path, line: str) -> str:
    done = run(["sh", "-c", f"echo '{line}' | timeout -k 1 2 {elf}"])
    return next((text for text in done.stdout.splitlines() if " err " in text), done.stdout)
