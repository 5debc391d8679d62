# SPDX-License-Identifier: Apache-2.0
"""Each kind of power switch really switches a virtual board, and one that lies is named."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, HilError, RigError
from hil.boards.flash.identify import check_identity, identify
from hil.boards.http_plug import HttpPlug
from hil.boards.power.command import Command
from hil.boards.power.shelly import Shelly
from hil.boards.power.tasmota import Tasmota
from hil.boards.power.uhubctl import Uhubctl
from hil.boards.rack import Board, Power, load_rack
from hil.boards.rack.check import check_rack
from hil.boards.supply import switch_power
from hil.boards.supply_proof import prove_power
from hil.virtual.board.client import BoardControl
from tests.boards.switch_rig import Plug, install_uhubctl, no_virtual_board, served
from tests.in_process import hil
from tests.lab import Lab
from tests.virtual.virtual_board_rig import MAC, REPOSITORY, BoardProcess, is_alive, wait_until


@pytest.fixture
def board(process: BoardProcess) -> Iterator[Board]:
    yield Board("b1", "virtual", "esp32", process.url(), Power("none"), mac=MAC, where="rack.yaml:7")
    process.control.clear()
    process.control.power("on")


def mode(process: BoardProcess) -> str:
    return str(process.control.state()["mode"])


@pytest.fixture
def supply() -> list[bool]:
    """What a plug's relay drives: each state that it was switched to."""
    return []


def behind(plug: Plug, *, relay: int | None = None, password_env: str = "") -> Board:
    """Return a board behind a plug, by default behind its first relay."""
    kind: type[HttpPlug] = Tasmota if plug.kind == "tasmota" else Shelly
    driver = kind(plug.url, kind.first_relay if relay is None else relay, password_env)
    power = Power(plug.kind, driver, off_time_s=0.01)
    return Board("b1", "virtual", "esp32", "nowhere", power, mac=MAC, where="rack.yaml:7")


@pytest.mark.parametrize("kind", ["tasmota", "shelly1", "shelly2"])
def test_a_plug_switches_a_board(supply: list[bool], kind: str) -> None:
    """Off, on and a cycle arrive at the board. Where the plug takes the command and its relay stays, that is
    the rig's fault, with the plug's address."""
    with served(Plug(kind, supply.append)) as plug:
        for action in ("off", "on", "cycle"):
            switch_power(behind(plug), action, virtual=no_virtual_board)
    assert supply == [False, True, False, True]
    with (
        served(Plug(kind, supply.append, stuck=True)) as plug,
        pytest.raises(RigError, match=rf"{plug.url} failed: .*reports that it is still on"),
    ):
        switch_power(behind(plug), "off", virtual=no_virtual_board)


@pytest.mark.parametrize("kind", ["tasmota", "shelly1"])
def test_a_plug_with_a_password(supply: list[bool], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes from the environment; without it the plug's refusal says which key names it, and of a wrong
    one that it is refused: Tasmota says the same of both, which it was this end knows."""
    with served(Plug(kind, supply.append, password="secret-pw")) as plug:
        with pytest.raises(RigError, match=r"wants a password \(password_env\)"):
            switch_power(behind(plug), "off", virtual=no_virtual_board)
        known = behind(plug, password_env="PLUG_PASSWORD")
        with pytest.raises(ConfigError, match=r"rack.yaml:7: .*environment variable PLUG_PASSWORD"):
            switch_power(known, "off", virtual=no_virtual_board)
        monkeypatch.setenv("PLUG_PASSWORD", "wrong")
        with pytest.raises(RigError, match="refuses the password"):
            switch_power(known, "off", virtual=no_virtual_board)
        assert supply == []
        monkeypatch.setenv("PLUG_PASSWORD", "secret-pw")
        switch_power(known, "off", virtual=no_virtual_board)
    assert supply == [False]


@pytest.mark.parametrize(
    ("kind", "options", "relay", "sentence"),
    [
        ("tasmota", {}, 3, 'no relay 3, or is no Tasmota; it says {"Command": "Unknown"}'),
        ("shelly2", {}, 7, "HTTP status 500"),
        ("shelly1", {}, 2, "HTTP status 404"),
        ("shelly2", {"password": "x"}, 0, "login of the second generation"),
    ],
)
def test_a_plug_that_is_another_than_the_rack_file_says(
    supply: list[bool], kind: str, options: dict[str, str], relay: int, sentence: str
) -> None:
    """No such relay, no such login: what the plug says is in the sentence, and the board stays on."""
    with served(Plug(kind, supply.append, **options)) as plug, pytest.raises(RigError) as caught:
        switch_power(behind(plug, relay=relay), "off", virtual=no_virtual_board)
    assert sentence in str(caught.value)
    assert supply == []


def test_a_plug_that_is_not_there() -> None:
    """Nobody answers: the rig's, at once."""
    gone = Plug("tasmota", print, url="http://127.0.0.1:9")
    with pytest.raises(RigError, match=r"did not answer: .*refused"):
        switch_power(behind(gone), "off", virtual=no_virtual_board)


def hub_for(folder: Path, process: BoardProcess, board: Board, monkeypatch: Any, **options: str) -> Board:
    install_uhubctl(folder, process, sys.executable, **options)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return replace(board, power=Power("uhubctl", Uhubctl("1-1.2", 2), off_time_s=0.01))


@pytest.mark.slow
def test_a_hubs_port_switches_a_board(
    process: BoardProcess, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both halves of a USB 3 hub have to say what was asked for; a cycle is off, a while, and on. Of a hub
    that is not there uhubctl's own words are told; of one that does not switch its state tells, whatever its
    exit status, and what is plugged in has words of its own."""
    hub = hub_for(tmp_path, process, board, monkeypatch)
    switch_power(hub, "off", virtual=no_virtual_board)
    assert mode(process) == "off"
    switch_power(hub, "cycle", virtual=no_virtual_board)
    assert mode(process) != "off"
    elsewhere = replace(hub, power=Power("uhubctl", Uhubctl("3-4", 2)))
    with pytest.raises(RigError, match="ended with status 1"):
        switch_power(elsewhere, "off", virtual=no_virtual_board)
    lying = hub_for(tmp_path, process, board, monkeypatch, lies="yes")
    states = r"port 2 of hub 1-1\.2 says power enable connect; port 2 of hub 2-1\.2 says off"
    with pytest.raises(RigError, match=states):
        switch_power(lying, "off", virtual=no_virtual_board)


@pytest.mark.slow
def test_a_switch_is_proven_at_the_board(
    process: BoardProcess, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Off, its boot loader is silent; on, the same board is back. Of a hub that says it cut the power, and a
    board that answers all the same, that is said."""
    with served(Plug("tasmota", lambda on: process.control.power("on" if on else "off"))) as plug:
        found = prove_power(replace(board, power=behind(plug).power), virtual=no_virtual_board)
    assert found.ok
    assert "off, it is gone; " in found.sentence
    found = prove_power(hub_for(tmp_path, process, board, monkeypatch, lies="hub"), virtual=no_virtual_board)
    assert not found.ok
    assert f"still answers (MAC address {MAC})" in found.sentence
    assert "hub that really" in found.mend


@pytest.mark.slow
def test_a_board_that_does_not_come_back_is_named(
    process: BoardProcess, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch that only switches off is none."""
    monkeypatch.setattr("hil.boards.supply_proof.BACK_DEADLINE_S", 0.0)

    def cut(_on: bool) -> None:
        process.control.power("off")
        monkeypatch.setattr("hil.boards.flash.identify.CONNECT_ATTEMPTS", 1)  # nobody answers any more

    plug = Plug("tasmota", cut)
    with served(plug):
        found = prove_power(replace(board, power=behind(plug).power), virtual=no_virtual_board)
    assert not found.ok
    assert "did not come back" in found.sentence


@pytest.mark.slow
def test_who_answers_is_compared_with_the_rack_file(process: BoardProcess, board: Board) -> None:
    """Chip, MAC address and flash chip are read; each that differs is in the sentence."""
    found = identify(board)
    assert (found.chip, found.mac, found.flash) == ("esp32", MAC, "ef 4018")
    check_identity(board, found)
    wrong = replace(board, chip="esp32c3", mac="02:00:00:00:00:99")
    with pytest.raises(ConfigError) as caught:
        check_identity(wrong, found)
    for word in ("rack.yaml:7", "its chip is esp32", "esp32c3", MAC, "02:00:00:00:00:99"):
        assert word in str(caught.value)


@pytest.mark.slow
def test_a_host_that_does_not_answer_is_no_board(board: Board) -> None:
    """A remote port that nobody serves is found at the check, by whatever opens it in a run."""
    with pytest.raises(HilError, match="could not be opened"):
        identify(replace(board, serial="rfc2217://127.0.0.1:9"))


@pytest.mark.slow
def test_a_command_that_hangs_is_ended_with_its_children(
    process: BoardProcess, board: Board, tmp_path: Path
) -> None:
    """Nothing of it is left that could switch the board later."""
    late = tmp_path / "late"
    command = f"sh -c 'sh -c \"echo $$ > {late}; sleep 600; : {{action}}\" & wait'"
    hanging = replace(board, power=Power("command", Command(command, 1.0)))
    with pytest.raises(RigError, match="did not end within 1 s"):
        switch_power(hanging, "off", virtual=no_virtual_board)
    child = int(late.read_text())
    wait_until(lambda: not is_alive(child), "the end of the command's child")
    assert mode(process) != "off"


BY_HAND = """
import sys
from pathlib import Path
from hil.base.errors import exit_status
from hil.boards.rack import Board, Power
from hil.boards.supply import switch_power
board = Board("b1", "physical", "esp32", "/dev/null", Power("manual"), where="rack.yaml:7")
sys.exit(exit_status(lambda: switch_power(board, sys.argv[1], virtual=lambda _: None)))
"""


@pytest.mark.slow
def test_by_hand_it_asks_at_the_terminal(process: BoardProcess) -> None:
    """Each switch of a cycle is asked for, and goes on at Enter."""
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-c", BY_HAND, "cycle"]
    with subprocess.Popen(argv, stdin=theirs, stderr=theirs, stdout=theirs, cwd=REPOSITORY) as program:
        os.close(theirs)
        control = BoardControl(process.folder / "control")
        for state in ("off", "on"):
            said = b""
            while b"press Enter. " not in said:
                said += os.read(ours, 1024)
            assert f"Switch board b1 {state} by hand" in said.decode()
            control.power(state)
            os.write(ours, b"\n")
        assert program.wait(20) == 0
    os.close(ours)


@pytest.mark.slow
def test_by_hand_without_a_terminal_is_refused() -> None:
    """Nobody would be asked: exit 2, with the line of the rack file."""
    argv = [sys.executable, "-c", BY_HAND, "off"]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    assert done.returncode == 2
    assert "rack.yaml:7: power off " in done.stderr
    assert "no terminal" in done.stderr


RACK = """
schema: 1
name: lab
host: {interface: eth0, address: 192.168.77.1}
access_point: {type: external, ssid: lab, psk_env: PSK}
boards:
  - id: a
    kind: physical
    target: esp32
    serial: /dev/ttyUSB0
    power: POWER
"""


def rack_with(tmp_path: Path, power: str) -> Path:
    path = tmp_path / "rack.yaml"
    path.write_text(RACK.replace("POWER", power))
    return path


@pytest.mark.parametrize(
    ("text", "power"),
    [
        ("{type: uhubctl, location: 1-1.2, port: 3}", Power("uhubctl", Uhubctl("1-1.2", 3), 2.0)),
        (
            '{type: tasmota, url: "http://plug:8080/", off_time: 500 ms, timeout: 3 s}',
            Power("tasmota", Tasmota("http://plug:8080", 1, timeout_s=3.0), 0.5),
        ),
        (
            '{type: shelly, url: "http://10.0.0.7", password_env: PW}',
            Power("shelly", Shelly("http://10.0.0.7", 0, "PW"), 2.0),
        ),
        ("{type: command, command: 'x {action}'}", Power("command", Command("x {action}"), 2.0)),
        ("{type: manual}", Power("manual")),
    ],
)
def test_a_rack_file_names_the_switch(tmp_path: Path, text: str, power: Power) -> None:
    """Each kind has its keys, with defaults."""
    assert load_rack(rack_with(tmp_path, text)).board("a").power == power


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{type: uhubctl, location: usb1, port: 3}", ["'usb1' is not a hub location", "run uhubctl"]),
        ("{type: uhubctl, location: 1-1}", ["port"]),
        ('{type: tasmota, url: "https://plug"}', ["'https://plug' is not an address", "password_env"]),
        ('{type: shelly, url: "http://admin:geheim@plug"}', ["'plug' is not an address"]),
        ('{type: shelly, url: "http://plug:99999"}', ["'http://plug:99999' is not an address"]),
        ("{type: kasa}", ["kasa", "command"]),
    ],
)
def test_a_switch_that_cannot_be_is_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    """File, line, what is wrong and the way out; a password in an address is not repeated."""
    with pytest.raises(ConfigError) as caught:
        load_rack(rack_with(tmp_path, text))
    for word in ["rack.yaml:11", *words]:
        assert word in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_a_hub_is_switched_whole_and_without_a_person(tmp_path: Path) -> None:
    """`hub_power` has no port, and any type that a run can use."""
    path = rack_with(tmp_path, '{type: none}\n    hub_power: {type: uhubctl, location: "1-1"}')
    assert load_rack(path).board("a").hub_power == Power("uhubctl", Uhubctl("1-1", 0), 2.0)
    with pytest.raises(ConfigError, match=r"rack.yaml:12: .*manual"):
        load_rack(rack_with(tmp_path, "{type: none}\n    hub_power: {type: manual}"))


@pytest.mark.slow
def test_a_rack_check_proves_each_switch(new_lab: Callable[..., Lab]) -> None:
    """`--power` of a rack that is up switches its boards off and on; without it nothing is switched."""
    lab = new_lab(1)
    options = ("--rack", str(lab.rack), "--out", str(lab.out))
    up = lab.keep_up()
    try:
        up.await_line("miniterm")
        assert "power of b1" not in hil("rack", "check", *options, env=lab.env).stdout
        done = hil("rack", "check", "--power", *options, env=lab.env)
        assert "ok   power of b1: " in done.stdout, done.stdout
        assert done.returncode == 0
    finally:
        up.close()


@pytest.mark.slow
def test_a_rack_check_asks_each_board_who_it_is(process: BoardProcess, tmp_path: Path) -> None:
    """Over a remote port too: the right board, the same one again, another one, and a host that is silent."""
    head = text = RACK.partition("  - id: a")[0]
    # a serial port is one board's, so one host is named in three ways
    for name, url, mac in (
        ("right", process.url(), MAC),
        ("twice", process.url().replace("127.0.0.1", "localhost"), ""),
        ("swapped", process.url().replace("127.0.0.1", "0.0.0.0"), "02:00:00:00:00:99"),  # noqa: S104
        ("gone", "rfc2217://127.0.0.1:9", "02:00:00:00:00:98"),
    ):
        text += f"  - {{id: {name}, kind: physical, target: esp32, serial: '{url}'"
        text += f", mac: '{mac}'}}\n" if mac else "}\n"
    path = tmp_path / "rack.yaml"
    path.write_text(text)
    found = {one.subject: one for one in check_rack(load_rack(path), tmp_path / "locks", served={})}
    for name, ok, part in (
        ("right", True, f"has esp32 {MAC}, flash ef 4018"),
        ("twice", False, f"{MAC}, and so has board right."),
        ("swapped", False, "another board answers"),
        ("gone", False, "could not be opened"),
    ):
        assert (found[name].ok, part in found[name].sentence) == (ok, True), found[name]
    path.write_text(f"{head}  - {{id: nameless, kind: physical, target: esp32, serial: '{process.url()}'}}\n")
    found = {one.subject: one for one in check_rack(load_rack(path), tmp_path / "locks", served={})}
    assert f"mac: {MAC}" in found["nameless"].sentence


BY_COMMAND = Board("a", "physical", "esp32", "/dev/ttyUSB0", Power("none"), where="rack.yaml:7")


@pytest.mark.parametrize("action", ["on", "off"])
def test_the_command_gets_the_action(tmp_path: Path, action: str) -> None:
    """{action} becomes on or off, and a quoted word stays one word."""
    (tmp_path / "switch").write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/said\n')
    command = Command(f"sh {tmp_path}/switch -a {{action}} 'two words'", 20.0)
    switch_power(replace(BY_COMMAND, power=Power("command", command)), action, virtual=no_virtual_board)
    assert (tmp_path / "said").read_text() == f"-a|{action}|two words|"


@pytest.mark.parametrize(
    ("text", "mode", "sentence"),
    [
        (None, 0, "the program '.*/switch'"),
        ("#!/bin/sh\n", 0o644, "could not be started: Permission denied.*chmod \\+x"),
        ("no program at all", 0o755, "could not be started: Exec format error"),
        ("#!/bin/sh\nprintf 'no such port \\377' >&2; exit 4\n", 0o755, "ended with status 4: no such port"),
        ("#!/bin/sh\nexec sleep 60\n", 0o755, "did not end within 0.2 s"),
    ],
)
def test_a_command_that_fails_is_a_sentence(
    tmp_path: Path, text: str | None, mode: int, sentence: str
) -> None:
    """Not there, not executable, no program, a status, no end: each is the rig's, with what to do and the
    line of the rack file."""
    path = tmp_path / "switch"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    command = Command(f"{path} {{action}}", 0.2 if "sleep" in str(text) else 20.0)
    with pytest.raises(RigError, match=f"rack.yaml:7: .*{sentence}"):
        switch_power(replace(BY_COMMAND, power=Power("command", command)), "on", virtual=no_virtual_board)


def test_a_plug_with_words_of_its_own_is_told_so() -> None:
    """StateText is Tasmota's setting, which home automation changes: no relay is missing."""
    with served(Plug("tasmota", bool, words=("0", "1"))) as plug, pytest.raises(RigError, match="StateText1"):
        Tasmota(plug.url, 1).switch(on=True)
