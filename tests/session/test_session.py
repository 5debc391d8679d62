# SPDX-License-Identifier: Apache-2.0
"""A session gets exact data out of a bad console, or a clear error; never a shorter series."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hil
from hil.base.errors import ConfigError, FirmwareError, RigError
from hil.model import Case
from hil.session import AgentSession
from hil.wire import Note
from tests.session.fake_agent import FIRMWARE_SHA256, RULER_HASH, FakeAgent, FakeConsole, Noise
from tests.session.session_rig import CASE, LONG, exactly, run, session_with


def test_a_case_comes_back_whole() -> None:
    """All that the board said of a case is in the series."""
    agent = FakeAgent(bursts=[LONG], warmup_rows=7)
    series = run(agent)
    assert series.columns == exactly(LONG)
    assert (series.case, series.warmup_rows, series.clock) == (CASE, 7, "esp_timer")
    assert (series.firmware_sha256, series.ruler_hash) == (FIRMWARE_SHA256, RULER_HASH)
    assert (series.protocol_version, series.device["sched"]) == (1, "freertos")
    assert agent.acknowledged == [1]


def test_bursts_are_one_series() -> None:
    """A run in bursts is merged in order, each burst acknowledged before the next begins."""
    bursts = [{"x_us": list(range(base, base + 40))} for base in (0, 1000, 2000)]
    agent = FakeAgent(bursts=bursts, warmup_rows=4)
    series = run(agent)
    assert series.columns == {"x_us": (*range(40), *range(1000, 1040), *range(2000, 2040))}
    assert (series.warmup_rows, agent.acknowledged) == (4, [1, 2, 3])
    assert series.device["heap_free_bytes"] == 997  # the last burst's


def test_how_long_the_board_measured_is_kept() -> None:
    """The bursts' measuring adds up, as the host waited for it; what transferring them took is not in it."""
    for bursts in (1, 3):
        series = run(FakeAgent(bursts=[LONG] * bursts, measuring_s=2.0))
        assert series.measured_s == pytest.approx(2.0 * bursts, abs=0.3)


def test_nothing_is_sent_while_the_board_measures() -> None:
    """Between the reply to `run` and the acknowledgement the host is silent."""
    agent = FakeAgent(measuring_s=9.0)
    session, console, _ = session_with(agent)
    session.run_case(CASE, timeout_s=10.0)
    after_run = console.written.split(b" run ")[1]
    assert after_run.count(b"\n") == 2  # the end of `run`, and `ack`


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10_000),
    drop=st.floats(0, 0.3),
    repeat=st.floats(0, 0.5),
    corrupt=st.floats(0, 0.3),
    truncate=st.floats(0, 0.2),
    lose_newline=st.floats(0, 0.2),
)
def test_a_bad_console_yields_exact_data_or_an_error(
    seed: int, drop: float, repeat: float, corrupt: float, truncate: float, lose_newline: float
) -> None:
    """Whatever is lost, repeated, changed or cut, both ways: exact data, or an error of the rig."""
    noise = Noise(seed, drop, repeat, corrupt, truncate, lose_newline)
    agent = FakeAgent(bursts=[LONG, {name: values[:90] for name, values in LONG.items()}])
    try:
        series = run(agent, up=noise, down=replace(noise, seed=seed + 1))
    except RigError:
        return
    assert series.columns == {name: (*values, *values[:90]) for name, values in exactly(LONG).items()}
    assert agent.executed.count("run") == 1


def test_a_moderately_bad_console_costs_time_only() -> None:
    """One line in ten damaged and one in ten lost is not an error."""
    for seed in range(20):
        noise = Noise(seed, drop=0.1, corrupt=0.1, repeat=0.1)
        assert run(FakeAgent(bursts=[LONG]), up=noise).columns == exactly(LONG)


@pytest.mark.parametrize("kind", ["B", "D", "E", "BDE", "R"])
def test_lines_lost_at_first_are_asked_for_again(kind: str) -> None:
    """Begin, data, end, all of them, or the reply to `run`: each can get lost."""
    agent = FakeAgent(bursts=[LONG])
    session, console, _ = session_with(agent)
    forwarded = console.send
    lost: set[str] = set()

    def lossy(lines: list[str]) -> None:
        kinds = {line: line.split(" ")[3] for line in lines if line.startswith("@hil")}
        kept = [line for line in lines if kinds.get(line, "-") not in kind or kinds[line] in lost]
        lost.update(kinds[line] for line in lines if line not in kept)
        forwarded(kept)

    console.send = lossy  # type: ignore[method-assign]
    assert session.run_case(CASE, timeout_s=10.0).columns == exactly(LONG)
    assert lost == set(kind)
    assert agent.executed.count("run") == 1


def test_a_cable_that_never_carries_a_block_is_the_rigs_fault() -> None:
    """Damage that asking again does not mend ends, and names cable and count."""
    session, console, _ = session_with(FakeAgent(bursts=[LONG]))
    carry = console.up.carry
    console.up.carry = lambda line: b"" if b" D 1 2 " in line else carry(line)  # type: ignore[method-assign]
    with pytest.raises(RigError, match=r"did not arrive whole.*1 blocks are missing.*serial cable"):
        session.run_case(CASE, timeout_s=10.0)


def test_a_command_that_always_arrives_damaged_is_the_rigs_fault() -> None:
    """The board says that it cannot read us; we do not go on for ever."""
    session, console, _ = session_with(FakeAgent())
    console.down = Noise(corrupt=1.0)
    with pytest.raises(RigError, match=r"arrived damaged|no answer|not a byte"):
        session.info()


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda line: line.replace("mode=fast", "mode=slow"), "parameters that differ.*mode=fast.*mode=slow"),
        (lambda line: line.replace("count=3,", ""), "parameters that differ"),
        (lambda line: line.replace(" rows=700 w", " rows=699 w"), "contradicts itself: rows and blocks"),
        (lambda line: line.replace(" crc32=", " crc32=f"), "contradicts itself: CRC-32|content is wrong"),
        (lambda line: line.replace(f"={FIRMWARE_SHA256} r", f"={'00' * 32} r"), "but 0000"),
        (lambda line: line.replace("burst=1", "burst=2"), "Burst 2 of example is not the 1"),
    ],
)
def test_lines_that_contradict_each_other_are_an_error(edit: Callable[[str], str], sentence: str) -> None:
    """A wrong case echo, length, checksum, image or order is the firmware's fault, not a series."""
    agent = FakeAgent()
    session, _, _ = session_with(agent)
    agent.edit_line = edit
    with pytest.raises(FirmwareError, match=sentence):
        session.run_case(CASE, timeout_s=10.0)


def test_a_wrong_parameter_is_the_callers_fault() -> None:
    """The agent's list of what is allowed is in the sentence. A misspelt field is named, its value is not."""
    session, _, _ = session_with(FakeAgent())
    with pytest.raises(ConfigError, match=r"refused 'run': bad-parameter.*allowed=count,mode"):
        session.run_case(Case(bench="example", parameters={"cuont": 3}), timeout_s=1.0)
    with pytest.raises(ConfigError, match="unknown-field") as caught:
        session.provision({"pks": "correct horse"})
    assert "correct horse" not in str(caught.value)


def test_credentials_arrive_and_are_never_seen() -> None:
    """Long fields arrive in pieces; the log shows neither value nor base64, not even if the board does."""
    agent = FakeAgent()
    session, console, log = session_with(agent, down=Noise(seed=5, drop=0.2), up=Noise(seed=6, drop=0.2))
    key = "-----BEGIN EC PRIVATE KEY-----\n" + "c2VjcmV0" * 100 + "\n-----END EC PRIVATE KEY-----\n"
    told = {"client_key_pem": key, "psk": "correct horse", "mqtt_password": "battery staple"}
    session.provision({**told, "utc_us": 1_700_000_000_000_000})
    console.send([f"W (1) app: they are {told['psk']} and {told['mqtt_password']}", key.splitlines()[1]])
    session.info()
    assert {name: agent.provisioned[name].decode() for name in told} == told
    assert agent.provisioned["utc_us"] == b"1700000000000000"
    shown = "\n".join(log)
    for secret in (told["psk"], told["mqtt_password"]):
        assert secret not in shown
        assert base64.b64encode(secret.encode()).decode() not in shown
    assert "c2VjcmV0" not in shown
    assert "YzJWamNtVj" not in shown
    assert "provision psk 0 ***" in shown


def test_a_line_that_makes_no_sense_is_quoted_without_secrets() -> None:
    """A marked line whose checksum is right and whose content is not may still hold what was provisioned."""
    agent = FakeAgent()
    session, console, _ = session_with(agent)
    psk = "it's \\correct horse"
    session.provision({"psk": psk})
    console.send([agent.line("Z", f"psk is {psk}")])
    with pytest.raises(FirmwareError, match=r"kind Z.*psk is \*\*\*.*Log: out/bench-1.log") as caught:
        session.info()
    assert "correct horse" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("version", ["", hil.__version__, "0.0.9"])
def test_a_component_of_another_version_is_named(version: str) -> None:
    """What another version's agent refuses says so; this one's, or one that does not say its version, not."""
    session, _, _ = session_with(FakeAgent(version=version))
    with pytest.raises(ConfigError, match="refused 'run'") as caught:
        session.run_case(Case(bench="example", parameters={"cuont": 3}), timeout_s=1.0)
    other = f"version 0.0.9, this tool {hil.__version__}"
    assert (other in caught.value.sentence) == (version == "0.0.9")
    assert ("component" in caught.value.next_step) == (version == "0.0.9")


def test_the_link_tells_what_it_is_like_or_why_not() -> None:
    """`net up` returns the link's environment; a refusal by the access point is the rig's. Numbers are
    numbers."""
    session, _, _ = session_with(FakeAgent())
    assert session.info()["heap_free_bytes"] == 1000
    assert session.network_up(timeout_s=5.0) == {"rssi_dbm": -52}
    session, _, _ = session_with(FakeAgent(link_error="ESP_ERR_WIFI_SSID"))
    with pytest.raises(RigError, match="ESP_ERR_WIFI_SSID"):
        session.network_up(timeout_s=5.0)


def test_restart_waits_for_the_next_boot() -> None:
    """After a restart the session talks to the new boot, although the old one still answered."""
    for seed in range(10):
        agent = FakeAgent()
        session, _, _ = session_with(agent, up=Noise(seed, drop=0.2), down=Noise(seed + 50, drop=0.2))
        before = session.hello
        assert before is not None
        hello = session.restart(timeout_s=60.0)
        assert hello.boot != before.boot
        assert agent.boot == 2
        assert session.run_case(CASE, timeout_s=10.0).rows == 700


def test_an_old_hello_in_the_pipe_does_not_count() -> None:
    """Only a hello that our own command brought is of the boot that runs now."""
    agent = FakeAgent()
    console = FakeConsole(agent)
    console.send([agent.hello()])
    console.send(agent.reset())
    session = AgentSession(console, "bench-1", clock=console.clock)
    assert session.wait_ready(timeout_s=5.0).boot == "00000002"
    assert session.run_case(CASE, timeout_s=10.0).rows == 700


NOTES = [(0.2, "ready port=5001"), (0.4, "ready port=5001"), (0.6, "done")]


def test_notes_are_handed_over_in_order_while_the_board_measures() -> None:
    """Each note comes as often as it was told, before its burst's samples, in every burst of the run."""
    agent = FakeAgent(bursts=[{"x_us": [1]}, {"x_us": [2]}], notes=NOTES)
    session, console, _ = session_with(agent)
    heard: list[tuple[int, str, bool]] = []

    def hear(note: Note) -> None:
        heard.append((note.transfer, note.kind, b" ack " in console.written))

    assert session.run_case(CASE, timeout_s=10.0, on_note=hear).columns == {"x_us": (1, 2)}
    first = [(1, kind, False) for kind in ("ready", "ready", "done")]
    assert heard == [*first, *((2, kind, True) for _, kind, _ in first)]


def test_notes_of_no_run_are_ignored() -> None:
    """A note of an earlier run, one with nobody to hear it, or one between two runs, changes nothing."""
    agent = FakeAgent(bursts=[{"x_us": [1]}], notes=NOTES)
    session, console, _ = session_with(agent)
    assert session.run_case(CASE, timeout_s=10.0).columns == {"x_us": (1,)}
    agent.notes = ()
    console.send([agent.line("N", "1 late"), agent.line("N", "2 early")])
    agent.due.append((console.now + 0.5, lambda: [agent.line("N", "1 stale")]))
    session.info()
    heard: list[Note] = []
    agent.due.clear()
    session.run_case(CASE, timeout_s=10.0, on_note=heard.append)
    assert not heard


def test_a_damaged_note_is_a_damaged_line() -> None:
    """Notes that a bad console eats are missing, and nothing else is: the samples are whole."""
    notes = [(0.01 * number, f"ready number={number}") for number in range(1, 60)]
    agent = FakeAgent(bursts=[LONG], notes=notes)
    heard: list[Note] = []
    session, _, _ = session_with(agent, up=Noise(seed=3, corrupt=0.2, drop=0.1))
    series = session.run_case(CASE, timeout_s=20.0, on_note=heard.append)
    assert series.columns == exactly(LONG)
    numbers = [int(note.fields["number"]) for note in heard]
    assert 20 < len(numbers) < 59
    assert numbers == sorted(set(numbers))
    assert session.statistics.damaged_lines


def test_what_an_older_firmware_cannot_be_told_is_left_out() -> None:
    """A field that came later is skipped where the board does not know it; an older one is an error."""
    agent = FakeAgent(unknown_fields=("peer_host", "peer_port", "psk"))
    session, _, _ = session_with(agent)
    session.provision({"peer_host": "10.0.0.1", "peer_port": 5001, "utc_us": 17})
    assert agent.provisioned == {"utc_us": b"17"}
    with pytest.raises(ConfigError, match="unknown-field"):
        session.provision({"psk": "correct horse"})


def test_a_firmware_that_knows_no_cable_is_not_measured_over_wifi() -> None:
    """Where a board has another network than Wi-Fi, a firmware that cannot be told of it is at fault."""
    session, _, _ = session_with(FakeAgent(unknown_fields=("link",)))
    with pytest.raises(FirmwareError, match=r"supports only Wi-Fi.*'link'"):
        session.provision({"link": "openeth"})
