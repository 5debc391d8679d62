# SPDX-License-Identifier: Apache-2.0
"""The session against the real firmware, built with sanitizers; and the C side's own tests and fuzzing."""

from __future__ import annotations

import hashlib
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, FirmwareError, RigError
from hil.model import Case
from hil.session import AgentSession
from hil.thresholds import load_all
from hil.wire import format_command
from tests.firmware.kernel_rig import Board, board
from tests.host_builds import FUZZED, build_programs, build_sanitized
from tests.lab import wait_for
from tests.session.fake_agent import Noise

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
HOST = ROOT / "firmware" / "host"
C_TESTS = sorted(path.stem for path in (HOST / "test").glob("test_wire*.c"))
FUZZ_RUNS = 80_000  # the last that reaches anything new is the 52,007th
VERBS = "help hello info list provision provision-end net run ack resend abort restart"
STATE_TIMEOUT_S = 20.0
PUBLISH = Case(bench="publish", parameters={"count": 5, "qos": 1})


@pytest.fixture(scope="session")
def sanitized_build() -> Path:
    return build_sanitized("hil-firmware.elf", *C_TESTS)


@pytest.fixture
def rig(sanitized_build: Path) -> Iterator[Board]:
    """A session that has said hello. Afterwards the firmware must have ended without a finding."""
    with board(sanitized_build / "hil-firmware.elf") as running:
        yield running


def all_parameters(rig: Board, case: Case) -> Case:
    """Complete a case by the defaults that the board lists."""
    return Case(case.bench, rig.parameters(case.bench, **case.parameters))


def wait_for_state(session: AgentSession, state: str) -> None:
    """Ask the agent until it is in this state."""
    wait_for(lambda: session.info()["state"] == state, lambda: f"never {state}", STATE_TIMEOUT_S)


@pytest.mark.parametrize("program", C_TESTS)
def test_c_side_keeps_the_protocol(sanitized_build: Path, program: str) -> None:
    """The agent's building blocks, alone, under AddressSanitizer and UndefinedBehaviorSanitizer."""
    result = subprocess.run([sanitized_build / "test" / program], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def test_fuzzing_the_command_side_finds_nothing(tmp_path: Path) -> None:
    """Parser, checksum, base64 and provisioning survive hostile lines, guided by coverage."""
    fuzzers = build_programs(FUZZED, "fuzz_command")
    command = [fuzzers / "fuzz_command", f"-runs={FUZZ_RUNS}", "-seed=1", "-max_len=1100", "-timeout=10"]
    command += [f"-dict={HOST / 'test' / 'fuzz_command.dict'}", tmp_path]
    result = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert re.search(rf"Done {FUZZ_RUNS} runs", result.stderr)


def test_hello_names_image_benches_and_reason(rig: Board) -> None:
    """Hello tells what is needed before anything is measured; a bench that takes a driver is not in it."""
    hello = rig.session.hello
    assert hello is not None
    assert re.fullmatch(r"[0-9a-f]{64}", hello.firmware_sha256)
    assert set(hello.firmware_sha256) != {"0"}
    benches = load_all(ROOT / "thresholds")
    assert set(hello.benches) == {stem for stem, bench in benches.items() if bench.kinds != ("physical",)}
    assert hello.reset_reason == "POWERON"


@pytest.mark.parametrize(
    ("bench", "own"),
    [
        ("publish", ()),
        ("throughput", ("iperf",)),
        ("http_gateway", ("http_link",)),
        ("mcrae", ("rtos", "trace")),
        ("jitter", ("rtos", "trace")),
    ],
)
def test_ruler_hash_covers_what_measures(rig: Board, bench: str, own: tuple[str, ...]) -> None:
    """SHA-256 over agent, load, mqtt_link and the bench's own; a change of any makes another ruler."""
    components = ROOT / "firmware" / "components"
    files = [components / "benches" / f"{bench}.c"]
    for name in ("agent", "load", "mqtt_link", *own):
        found = [path for path in (components / name).rglob("*") if path.suffix in (".c", ".h")]
        assert found
        files += found
    digests = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    lines = [f"{digests[path]}  {path.relative_to(components)}\n" for path in sorted(files, key=str)]
    expected = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert rig.session.command("list", bench).fields["ruler_hash"] == expected


def test_info_tells_the_environment_and_help_the_verbs(rig: Board) -> None:
    """Heap, stacks, scheduling and link are there; memory that is a host's is called a host's. A person who
    types help, without tag or checksum, sees every verb."""
    info = rig.session.info()
    assert info["state"] == "idle"
    assert info["sched"] in ("fifo", "other")
    assert info["link"] == "host"
    memory = {key for key in info if "heap" in key or "stack" in key}
    assert {"host_heap_free_bytes", "host_heap_min_bytes", "host_stack_free_min_agent_run_bytes"} <= memory
    assert all(key.startswith("host_") for key in memory)
    assert [
        key for key in (*memory, "uptime_us") if not (isinstance(info[key], int) and info[key] >= 0)
    ] == []
    rig.process.write(b"help\r\n")
    rig.session.info()
    shown = rig.process.received.decode()
    verbs = VERBS.split()
    assert all(re.search(rf"^{verb} ", shown, re.MULTILINE) for verb in verbs)


@pytest.mark.parametrize(
    ("bench", "parameters", "sentence"),
    [
        ("pubish", {}, r"unknown-bench benches=.*publish"),
        ("publish", {"qos": 3}, r"bad-parameter key=qos allowed=0\.\.2"),
        ("publish", {"transport": "udp"}, r"bad-parameter key=transport allowed=tcp\|tls\|mtls"),
        ("publish", {"qoss": 1}, r"bad-parameter reason=unknown-key allowed=.*qos"),
        ("publish", {"count": "5x"}, r"bad-parameter key=count"),
    ],
)
def test_bad_parameters_are_refused_with_what_is_allowed(
    rig: Board, bench: str, parameters: dict[str, str | int], sentence: str
) -> None:
    """Nothing is measured with a parameter that the bench does not take, nor of a bench that there is not."""
    with pytest.raises(ConfigError, match=sentence):
        rig.session.run_case(Case(bench=bench, parameters=parameters), timeout_s=5.0)


def test_credentials_go_in_and_never_come_out(rig: Board) -> None:
    """Every field is accepted, and no part of a secret is printed by the board."""
    pem = "-----BEGIN CERTIFICATE-----\n" + "TWFkZXVwQ2VydA\n" * 100 + "-----END CERTIFICATE-----\n"
    secret = "correct horse battery"
    told = {"ssid": "lab", "psk": secret, "broker_host": "192.0.2.1", "broker_tcp_port": 1883}
    ports = {"broker_tls_port": 8883, "broker_mtls_port": 8884}
    pems = dict.fromkeys(("ca_pem", "client_cert_pem", "client_key_pem"), pem)
    rig.session.provision({**pems, **told, **ports})
    rig.session.network_up(timeout_s=5.0)
    rig.process.write(b"provision psk 0 c2VjcmV0\nc2VjcmV0 provision\nprovison psk 0 c2VjcmV0\n")
    with pytest.raises(ConfigError, match="unknown-field"):
        rig.session.provision({"password": secret})
    printed = rig.process.received.decode()
    for text in (secret, "TWFkZXVw", "VFdGa1pYVn", "c2VjcmV0"):
        assert text not in printed
    assert secret not in "\n".join(rig.log)


def test_a_host_has_no_cable(rig: Board) -> None:
    """A link that the host cannot play is refused by name; Wi-Fi it plays."""
    rig.session.provision({"link": "openeth"})
    with pytest.raises(RigError, match="link-failed error=ESP_ERR_NOT_SUPPORTED"):
        rig.session.network_up(timeout_s=5.0)
    assert "a host has no 'openeth'" in rig.process.received.decode()
    rig.session.provision({"link": "wifi"})
    rig.session.network_up(timeout_s=5.0)


def test_a_failing_run_tells_why_and_leaves_the_agent_idle(rig: Board) -> None:
    """Without a broker `publish` ends with an error, is acknowledged, and the next command finds it idle."""
    case = all_parameters(rig, PUBLISH)
    with pytest.raises(ConfigError, match=r"ended with ESP_\w+ instead of samples: the broker .* not prov"):
        rig.session.run_case(case, timeout_s=10.0)
    info = rig.session.info()
    assert (info["state"], info["transfer"]) == ("idle", 0)


def test_a_transfer_stays_until_it_is_acknowledged(rig: Board) -> None:
    """It can be asked for again and again; busy is what anything else gets; after the ack it is gone."""
    transfer = rig.session.command("run", "publish", "count=5").fields["transfer"]
    wait_for_state(rig.session, "holding")
    for _ in range(2):
        rig.session.command("resend", transfer)
        rig.session.info()
    printed = rig.process.received.decode()
    assert len(re.findall(rf"@hil 1 \d+ B {transfer} ", printed)) == 3
    assert len(re.findall(rf"@hil 1 \d+ E {transfer} ", printed)) == 3
    with pytest.raises(FirmwareError, match=rf"busy state=holding transfer={transfer}"):
        rig.session.command("run", "publish")
    with pytest.raises(FirmwareError, match="busy state=holding"):
        rig.session.provision({"psk": "12345678"})
    with pytest.raises(FirmwareError, match="no-block"):
        rig.session.command("resend", transfer, 0)
    rig.session.command("ack", transfer)
    with pytest.raises(FirmwareError, match="no-transfer state=idle"):
        rig.session.command("ack", transfer)


def test_abort_ends_a_run(rig: Board) -> None:
    """A bench that would wait long for its broker is stopped, and the agent measures again."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes the connection, never says a word
        rig.session.provision({"broker_host": "127.0.0.1", "broker_tcp_port": deaf.getsockname()[1]})
        rig.session.command("run", "publish", "count=100000")
        deaf.settimeout(10.0)
        connection, _ = deaf.accept()
        with connection:
            assert rig.session.info()["state"] == "running"
            rig.session.abort()
        wait_for_state(rig.session, "idle")
    assert "status=aborted" in rig.process.received.decode()
    assert rig.session.command("run", "publish", "count=5").ok


def test_an_aborted_run_ends_as_the_run_it_began(rig: Board) -> None:
    """Who waits for a run's samples learns at once that it was aborted; the next run has the next number."""

    def abort_when_connected(server: socket.socket) -> None:
        server.settimeout(STATE_TIMEOUT_S)
        connection, _ = server.accept()
        with connection:
            rig.process.write(b"abort\n")  # another hand on the console, without a tag
            ended.wait(STATE_TIMEOUT_S)

    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        rig.session.provision({"broker_host": "127.0.0.1", "broker_tcp_port": deaf.getsockname()[1]})
        case = all_parameters(rig, PUBLISH)
        thread = threading.Thread(target=abort_when_connected, args=(deaf,))
        thread.start()
        try:
            with pytest.raises(RigError, match="was aborted"):
                rig.session.run_case(case, timeout_s=STATE_TIMEOUT_S)
        finally:
            ended.set()
            thread.join()
    assert rig.session.info()["state"] == "idle"
    begun = re.findall(r"@hil 1 \d+ B (\d+) ", rig.process.received.decode())
    assert rig.session.command("run", "publish", "count=5").fields["transfer"] == str(int(begun[-1]) + 1)


def test_a_repeated_command_is_answered_again_and_not_executed_again(rig: Board) -> None:
    """The same line with the same tag starts one run, although the rest of a cut line came between."""
    line = format_command("run", "publish", "count=5", tag="twice-1")
    before = len(rig.process.received)
    rig.process.write(line + b"5 *12345678\nhalf\n" + line)
    rig.session.info()
    rig.session.abort()
    replies = re.findall(rb"@hil 1 \d+ R twice-1 (.*) \*", rig.process.received[before:])
    assert replies == [b"ok transfer=1", b"ok transfer=1"]


def test_a_noisy_line_to_the_board_executes_nothing_wrong(rig: Board) -> None:
    """Commands that arrive damaged are refused and sent again; the fields arrive exactly."""
    noise = Noise(seed=3, corrupt=0.2, truncate=0.1, lose_newline=0.1, repeat=0.2)
    write = rig.process.write
    rig.process.write = lambda data: write(b"".join(map(noise.carry, data.splitlines(True))))  # type: ignore[method-assign]
    session = AgentSession(rig.process, "bench-1")
    session.wait_ready(timeout_s=30.0)
    session.provision({"ca_pem": "x" * 4000, "broker_tcp_port": 1883})
    assert session.info()["state"] == "idle"
    assert session.statistics.repeated_commands > 0


def test_restart_is_a_new_boot(rig: Board) -> None:
    """The board comes back with another boot number and without what it was told."""
    before = rig.session.hello
    hello = rig.session.restart(timeout_s=20.0)
    assert before is not None
    assert (rig.process.boots, hello.reset_reason) == (2, "SW")
    assert hello.boot != before.boot
