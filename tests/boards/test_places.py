# SPDX-License-Identifier: Apache-2.0
"""Boards of a labgrid coordinator: exported, leased, given back whatever happens. labgrid is real."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from hil.base.errors import ConfigError
from hil.boards.places.exporter import exporter_config, place_commands
from hil.boards.places.lease import refusal
from hil.boards.places.settings import PlacesSettings, rack_with_places, read_places
from hil.boards.power.command import Command
from hil.boards.quarantine import folder_of, put, read_quarantine
from hil.boards.rack import load_rack
from hil.cli.board import release_board
from hil.model import Quarantine
from tests.boards.farm import LABGRID, RACK, Farm, farm_in
from tests.lab import ROOT, descendants, read_process, run, wait_for
from tools.bench.lease_race import run_race


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with farm_in(tmp_path) as farm:
        yield farm


@pytest.fixture(name="standing", scope="module")
def farm_that_stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """A farm of one board for tests that leave it as it was."""
    with farm_in(tmp_path_factory.mktemp("farm")) as farm:
        farm.export(farm.boards_rack(1))
        yield farm


def leased(process: subprocess.Popen[str]) -> Path:
    """Return the rack file of the boards that a process has leased."""
    assert process.stdout
    said = process.stdout.readline()
    assert said.startswith("leased "), said + process.stdout.read()
    return Path(said.split()[1])


def is_running(pid: str) -> bool:
    return read_process(int(pid)) is not None


def end(process: subprocess.Popen[str]) -> str:
    """Let a holder end; return what it, and its keeper, said meanwhile."""
    said, _ = process.communicate(timeout=60)
    return said


@pytest.mark.slow
def test_a_leased_board_is_the_board_that_was_exported(farm: Farm) -> None:
    """Boards come with their identity and their port, under the name of the rack that leases them; a second
    exporter under another name changes nothing of it."""
    rack = farm.boards_rack(2)
    exporter = farm.export(rack)
    config = (farm.folder / "exporter-1.yaml").read_text()
    first = farm.hold(farm.places_rack("match: {target: virtual-esp32}"))
    found = load_rack(leased(first)).boards
    wanted = load_rack(rack).boards
    assert [(one.id, one.mac, one.serial, one.target) for one in found] == [
        (one.id, one.mac, one.serial, one.target) for one in wanted
    ]
    end(first)
    exporter.kill()
    exporter.wait()
    farm.start_exporter("moved", config)
    second = farm.hold(farm.places_rack("match: {board: b1}"))
    assert [(one.id, one.mac) for one in load_rack(leased(second)).boards] == [("b1", wanted[0].mac)]
    end(second)


@pytest.mark.slow
def test_places_are_released_however_the_run_ends(standing: Farm) -> None:
    """The end of a run frees its places: by itself, by a kill; the file of its boards is of no use then."""
    rack = standing.places_rack("match: {board: b1}")
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        process = standing.hold(rack)
        boards = leased(process)
        if number is not None:
            process.send_signal(number)
        end(process)
        standing.await_free("b1")
        (keeper,) = re.findall(r"keeper_pid: (\d+)", boards.read_text())
        wait_for(lambda pid=keeper: not is_running(pid), lambda: "the keeper stays")
        with pytest.raises(ConfigError, match="the lease of these boards has ended"):
            load_rack(boards)
        assert rack_with_places(boards) == rack.resolve()


@pytest.mark.slow
@pytest.mark.heavy
def test_the_next_run_frees_what_a_dead_keeper_left(farm: Farm) -> None:
    """Where the keeper was killed with its run, nobody releases: the place stays taken; the next run on that
    host, which sees that the process is gone, takes it over."""
    farm.export(farm.boards_rack(1))
    rack = farm.places_rack("match: {board: b1}")
    process = farm.hold(rack)
    leased(process)
    (keeper,) = descendants(process.pid)
    process.send_signal(signal.SIGSTOP)  # else it would release between the two kills
    subprocess.run(["kill", "-KILL", str(keeper.pid)], check=True)
    held = farm.holder("b1")
    process.kill()
    end(process)
    assert farm.holder("b1") == held != "None"
    second = farm.hold(rack)
    leased(second)
    assert farm.holder("b1") not in (held, "None")
    end(second)
    farm.await_free("b1")


@pytest.mark.slow
@pytest.mark.heavy
def test_a_run_ends_with_its_keeper(farm: Farm) -> None:
    """A run whose keeper was killed is ended: nobody would take its places again after a restart. Until it
    has ended, no other run on the host takes them over."""
    farm.export(farm.boards_rack(1))
    rack = farm.places_rack("match: {board: b1}")
    process = farm.hold(rack)
    leased(process)
    (keeper,) = descendants(process.pid)
    process.send_signal(signal.SIGSTOP)  # it is slow to end
    subprocess.run(["kill", "-KILL", str(keeper.pid)], check=True)
    assert "place b1 is taken by" in farm.refused(rack)
    process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=60) == -signal.SIGTERM
    second = farm.hold(rack)
    leased(second)
    end(second)


CLAIM = """
import asyncio, os, sys
import keeper

keeper.SETTLE_S = 20.0  # the order is the test's, not the clock's

async def regain(address):
    session = await keeper.connect(address, os.getpid())
    sys.stdin.readline()
    print(await keeper.regain(session, "b1"), keeper.held_by(session, "b1") == session.name, flush=True)
    sys.stdin.readline()

async def take(address):
    session = await keeper.connect(address, os.getpid())
    assert await keeper.acquire(session, "b1")
    print("has it", flush=True)
    print(await keeper.settle(session, {"b1": ""}, asyncio.create_task(asyncio.Event().wait())), flush=True)
    await keeper.release_all(session, ["b1"])
    sys.stdin.readline()

async def main():
    await {"regain": regain, "take": take}[sys.argv[1]](sys.argv[2])
    os._exit(0)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.heavy
def test_who_was_faster_after_a_restart_gives_back(farm: Farm) -> None:
    """A coordinator that restarts forgets who held what. Who takes a place then has told nobody yet when the
    one that had it claims it, and gives it back; no claim stays behind."""
    farm.export(farm.boards_rack(1))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "hil" / "boards" / "places")}
    pipe = subprocess.PIPE
    before, faster = (
        subprocess.Popen(
            [LABGRID / "python", "-c", CLAIM, part, farm.address],
            env=environment, text=True, stdin=pipe, stdout=pipe, bufsize=1,
        )
        for part in ("regain", "take")
    )  # fmt: skip
    farm.holders += [before, faster]
    assert before.stdin and before.stdout and faster.stdout  # noqa: PT018
    assert faster.stdout.readline() == "has it\n"
    before.stdin.write("the coordinator is back\n")
    assert faster.stdout.readline() == "False\n"
    assert before.stdout.readline() == "True True\n"
    assert "hil_claim" not in farm.client("-p", "b1", "show")


FREE = """
import asyncio, os, subprocess, sys
import keeper

real = keeper.connect

async def main(address):
    run = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    session = await real(address, run.pid)
    assert await keeper.acquire(session, "b1")
    run.communicate()

    async def connect(address, run_pid):
        try:
            return await real(address, run_pid)
        except keeper.Refused:
            await keeper.disconnect(session)
            raise

    keeper.connect = connect
    await keeper.free(address, run.pid, ["b1"])
    os._exit(0)

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_place_is_given_back_though_the_run_is_no_more(standing: Farm) -> None:
    """The run may end before its keeper, and the coordinator may take no other session yet: ask again, under
    the name that has the place."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "hil" / "boards" / "places")}
    subprocess.run(
        [LABGRID / "python", "-c", FREE, standing.address], env=environment, check=True, timeout=60
    )
    assert standing.holder("b1") == "None"


@pytest.mark.slow
@pytest.mark.heavy
def test_patience_is_for_coordinator_and_exporter_too(farm: Farm) -> None:
    """With --wait a coordinator that is not there yet is waited for, and so is an exporter."""
    boards = farm.boards_rack(1)
    process = farm.hold(farm.places_rack("match: {board: b1}"), wait_s=60)
    farm.export(boards)
    leased(process)
    end(process)


@pytest.mark.slow
@pytest.mark.heavy
def test_a_taken_place_names_its_holder(farm: Farm) -> None:
    """Whoever asks for a taken place is told by whom and since when (status 3); with patience it gets it."""
    farm.export(farm.boards_rack(2))
    rack = farm.places_rack("match: {rack: lab}")
    farm.client("-p", "b2", "acquire")
    said = farm.refused(rack)
    assert re.search(r"refused 3 place b2 .* \S+/\S+ since 20\d\d-", said)
    assert f"labgrid-client -x {farm.address} -p b2 release --kick" in said
    assert farm.holder("b1") == "None"
    patient = farm.hold(rack, wait_s=60)
    one = farm.hold(farm.places_rack("match: {rack: lab}, count: 1", name="one"))
    assert [board.id for board in load_rack(leased(one)).boards] == ["b1"]
    farm.client("-p", "b2", "release")
    end(one)
    assert len(load_rack(leased(patient)).boards) == 2
    end(patient)


@pytest.mark.slow
def test_what_no_places_meet_is_refused(standing: Farm) -> None:
    """A tag that nothing has names the near misses, and too few boards are counted."""
    said = standing.refused(standing.places_rack("match: {target: virtual-esp23}"))
    assert "refused 2" in said
    assert "no place at" in said
    assert "'virtual-esp32'" in said  # did you mean
    assert "b1 but for target=" in said
    said = standing.refused(standing.places_rack("match: {board: b1}, count: 2"))
    assert "2 boards are requested" in said


@pytest.mark.parametrize(
    ("match", "near"),
    [
        ({"rack": "attic", "target": "virtual-esp32"}, "b1 but for rack=lab."),
        ({"rack": "lab", "target": "virtual-esp32", "memory": "psram"}, "b1 but for no memory."),
        ({"rack": "attic", "target": "esp32"}, "b1 (board=b1, rack=lab, target=virtual-esp32)."),
    ],
)
def test_the_nearest_place_is_told_by_what_it_lacks(match: dict[str, str], near: str) -> None:
    """A place that lacks one tag is told by it, one that lacks more by all of its tags."""
    places = {"b1": {"name": "b1", "board": "b1", "target": "virtual-esp32", "rack": "lab"}}
    settings = PlacesSettings("lab:20408", match, 0, "rack.yaml:5")
    assert f"Nearest: {near}" in str(refusal({"refused": "no match", "near": places}, settings))


@pytest.mark.slow
def test_trouble_is_one_sentence_with_a_way_out(farm: Farm) -> None:
    """A dead exporter, an exporter of another version and a coordinator that is not there say so; nothing
    stays acquired."""
    exporter = farm.export(farm.boards_rack(1))
    exporter.kill()
    exporter.wait()
    rack = farm.places_rack("match: {board: b1}")
    wait_for(lambda: "exporter-1" not in farm.client("resources"), lambda: "the dead exporter is still there")
    said = farm.refused(rack)
    assert "refused 3 place b1 " in said
    assert " */b1/NetworkSerialPort" in said
    config = (farm.folder / "exporter-1.yaml").read_text()
    farm.start_exporter("other", config.replace("schema: 1", "schema: 7"))
    said = end(farm.hold(rack))  # a process of its own, for the boards were leased
    assert "refused 2 place b1: " in said
    assert "version 7 " in said
    assert "hil reads 1" in said
    farm.await_free("b1")
    farm.started[0].kill()
    farm.started[0].wait()
    said = farm.refused(rack)
    assert f"refused 3 {rack}:5: the labgrid coordinator {farm.address} does not answer." in said
    assert "labgrid-coordinator" in said


@pytest.mark.slow
@pytest.mark.heavy
def test_a_place_that_nobody_exports_is_passed_over(farm: Farm) -> None:
    """labgrid gives out places whose exporter is gone: such a one is given back, and the next one taken."""
    first, second = farm.export_all([farm.boards_rack(1), farm.boards_rack(1, name="other", first=2)])
    first.kill()
    first.wait()
    wait_for(lambda: "exporter-1" not in farm.client("resources"), lambda: "the dead exporter is still there")
    process = farm.hold(farm.places_rack("match: {rack: lab}, count: 1"))
    assert [board.id for board in load_rack(leased(process)).boards] == ["b2"]
    assert farm.holder("b1") == "None"
    end(process)
    assert "*/b1/NetworkSerialPort" in farm.refused(farm.places_rack("match: {rack: lab}"))
    assert second.poll() is None


@pytest.mark.slow
def test_a_lease_survives_the_coordinator(farm: Farm) -> None:
    """A coordinator that restarts forgets who held what: the keeper takes its places again, as who it was."""
    farm.export(farm.boards_rack(1))
    process = farm.hold(farm.places_rack("match: {board: b1}"))
    leased(process)
    held = farm.holder("b1")
    assert ":hil." in held
    farm.started[0].kill()
    farm.started[0].wait()
    farm.start_coordinator()
    wait_for(lambda: farm.holder("b1") == held, lambda: farm.holder("b1"))
    assert "the run holds b1" in end(process)
    farm.await_free("b1")


@pytest.mark.slow
@pytest.mark.heavy
def test_a_run_whose_place_is_taken_away_is_ended(farm: Farm) -> None:
    """Who loses a place to somebody else is told to whom, and ends: two must not work with one board."""
    farm.export(farm.boards_rack(1))
    process = farm.hold(farm.places_rack("match: {board: b1}"))
    leased(process)
    farm.client("-p", "b1", "release", "--kick")
    process.wait(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert "b1 to nobody" in end(process)


class Plug(BaseHTTPRequestHandler):
    """A smart plug as labgrid's driver `simplerest` talks to it."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """What was asked is looked at, not printed."""


@pytest.mark.slow
@pytest.mark.heavy
def test_a_switch_behind_labgrid_is_used(farm: Farm) -> None:
    """A board's plug is exported as a power port of its place, which gives the board a switch: labgrid's own
    client and driver, as who holds the place. Without the lease the same command is refused by labgrid."""
    Plug.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Plug)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = farm.folder / "boards.yaml"
    path.write_text(
        f"{RACK.replace('type: virtual, profile: lab, seed: 1', 'type: wired')}boards:\n"
        "  - {id: b1, kind: physical, target: esp32, serial: 'rfc2217://127.0.0.1:7101',\n"
        "     network: {type: rmii, phy: lan87xx, clock: in},\n"
        f"     power: {{type: tasmota, url: 'http://127.0.0.1:{server.server_port}', relay: 3}}}}\n"
    )
    farm.start_coordinator()
    farm.start_exporter("lab", exporter_config(load_rack(path), {}))
    for line in place_commands(load_rack(path), farm.address):
        farm.client(*shlex.split(line)[3:])
    rack = farm.folder / "farm.yaml"
    rack.write_text(path.read_text().split("boards:")[0])
    with rack.open("a") as file:
        file.write(f"places: {{coordinator: '{farm.address}', match: {{board: b1}}}}\n")
    process = farm.hold(rack)
    boards = leased(process)
    driver = load_rack(boards).board("b1").power.driver
    assert isinstance(driver, Command)
    done = run([sys.executable, "-m", "hil", "board", "power", "b1", "off", "--rack", str(boards)])
    assert done.returncode == 0, done.stdout
    assert Plug.asked == ["/cm?cmnd=Power3%200"]
    end(process)
    farm.await_free("b1")
    refused = run([*shlex.split(driver.command.replace("{action}", "on"))])
    assert refused.returncode != 0
    assert Plug.asked == ["/cm?cmnd=Power3%200"]
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ("{coordinator: lab, match: {a: b}}", "coordinator 'lab' is not HOST:PORT"),
        ("{coordinator: 'lab:99999', match: {a: b}}", "is not HOST:PORT"),
        ("{coordinator: 'lab:20408', match: {}}", "match names no tag"),
        ("{coordinator: 'lab:20408', match: {a: b}, cuont: 1}", "cuont"),
        ("{coordinator: 'lab:20408', match: {a: b}, count: -1}", "count"),
    ],
)
def test_wrong_settings_name_file_line_and_value(tmp_path: Path, places: str, sentence: str) -> None:
    """A wrong `places:` is an error of the configuration."""
    path = tmp_path / "rack.yaml"
    path.write_text(f"schema: 1\nname: lab\nplaces: {places}\n")
    with pytest.raises(ConfigError, match=re.escape(sentence)) as told:
        read_places(path)
    assert f"{path}:3" in str(told.value)


def test_a_board_of_places_is_released_without_a_lease(tmp_path: Path) -> None:
    """By the rack file, and by what lists the boards of a lease that has ended: its quarantine lies here. For
    other commands the rack file has no boards, so that none talks to what nobody leased."""
    path, ended = tmp_path / "rack.yaml", tmp_path / "ended.yaml"
    path.write_text(f"{RACK}places: {{coordinator: 'lab:20408', match: {{a: b}}}}\n")
    with pytest.raises(ConfigError, match="not leased yet"):
        load_rack(path)
    ended.write_text(f"{RACK}leased: {{from: '{path}', keeper_pid: 1, keeper: gone}}\n")
    folder = folder_of(load_rack(path, unleased=True), tmp_path)
    for file in (path, ended):
        put(folder, Quarantine("b1", "2026-11-24T20:00:00Z", "anna", "it smokes"))
        done = CliRunner().invoke(release_board, ["b1", "--rack", str(file), "--out", str(tmp_path)])
        assert done.exit_code == 0, done.output
        assert "released; it was quarantined" in done.output
        assert read_quarantine(folder) == {}
    again = CliRunner().invoke(release_board, ["b1", "--rack", str(path), "--out", str(tmp_path)])
    assert "was in no quarantine" in again.output


PLUG = "http://10.0.0.9/cm?cmnd=Power{index}%20{value}"


@pytest.mark.slow
def test_labgrid_sees_virtual_boards(tmp_path: Path) -> None:
    """`hil exporter` writes what labgrid's exporter serves: each board's port as labgrid knows ports;
    labgrid-client acquires, shows and releases it. A hub's port is read in the file, and the rest is offered
    though there is no hub."""
    with farm_in(tmp_path) as farm:
        rack = load_rack(farm.boards_rack(1))
        config = YAML(typ="safe").load(exporter_config(rack, {}))["b1"]
        port = {"match": {"sys_name": "1-1.2:1.0"}, "index": 2}
        farm.start_coordinator()
        farm.start_exporter("hub", json.dumps({"b1": {**config, "USBPowerPort": port}}))
        wait_for(lambda: "hub/b1/NetworkSerialPort" in farm.client("resources"), lambda: "no serial port")
        for line in place_commands(rack, farm.address):
            farm.client(*shlex.split(line)[3:])
        farm.client("-p", "b1", "acquire")
        shown = farm.client("-p", "b1", "show")
        assert f"'port': {rack.board('b1').tcp_port}" in shown
        assert "'protocol': 'rfc2217'" in shown
        assert "target=virtual-esp32" in shown
        farm.client("-p", "b1", "release")


def test_a_device_is_exported_as_labgrid_serves_devices(tmp_path: Path) -> None:
    """A device becomes a RawSerialPort, which labgrid's exporter hands to ser2net; its switch stays here."""
    path = tmp_path / "rack.yaml"
    path.write_text(
        "schema: 1\nname: lab\nhost: {interface: eth0, address: 10.0.0.1}\n"
        "access_point: {type: wired}\nboards:\n"
        "  - {id: p1, kind: physical, target: esp32, serial: /dev/serial/by-id/x, labels: [a],\n"
        "     network: {type: rmii, phy: lan87xx, clock: in},\n"
        "     power: {type: command, command: 'sw {action}'}}\n"
    )
    config = YAML(typ="safe").load(exporter_config(load_rack(path), {}))
    assert config["p1"]["RawSerialPort"] == {"port": "/dev/serial/by-id/x", "speed": 921600}
    entry = json.loads(config["p1"]["HilBoard"]["entry"])
    assert entry["labels"] == ["a"]
    assert not entry.keys() & {"serial", "power"}


@pytest.mark.parametrize(
    ("power", "port"),
    [
        (
            "type: uhubctl, location: 1-1.2, port: 2",
            {"USBPowerPort": {"match": {"sys_name": "1-1.2:1.0"}, "index": 2}},
        ),
        ("type: uhubctl, location: '1', port: 2", {}),
        (
            "type: tasmota, url: 'http://10.0.0.9', relay: 3",
            {"NetworkPowerPort": {"model": "simplerest", "host": PLUG, "index": 3}},
        ),
        ("type: tasmota, url: 'http://10.0.0.9', password_env: PLUG", {}),
        ("type: shelly, url: 'http://10.0.0.9'", {}),
        ("type: command, command: 'sw {action}'", {}),
    ],
)
def test_a_switch_that_labgrid_can_use_is_a_power_port(
    tmp_path: Path, power: str, port: dict[str, object]
) -> None:
    """A hub's port and a plug without a password are exported, and the place is told to match them; what
    labgrid has no driver for stays here."""
    path = tmp_path / "rack.yaml"
    path.write_text(
        "schema: 1\nname: lab\nhost: {interface: eth0, address: 10.0.0.1}\n"
        "access_point: {type: wired}\nboards:\n"
        "  - {id: p1, kind: physical, target: esp32, serial: /dev/serial/by-id/x,\n"
        f"     network: {{type: rmii, phy: lan87xx, clock: in}}, power: {{{power}}}}}\n"
    )
    found = YAML(typ="safe").load(exporter_config(load_rack(path), {}))["p1"]
    assert {cls: told for cls, told in found.items() if "Power" in cls} == port
    matched = [line for line in place_commands(load_rack(path), "c:1") if "PowerPort" in line]
    classes = [cls if cls.startswith("Network") else f"Network{cls}" for cls in port]
    assert [line.rpartition("/")[2].rstrip("'") for line in matched] == classes


@pytest.mark.slow
@pytest.mark.heavy
def test_no_board_is_leased_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs race for boards as `hil run` leases them, with runs, keepers, exporters and the coordinator killed
    at random. A lock that the kernel keeps says that nobody had a board beside another, and at the end each
    board can be leased. `make bench-leases` does it 1,000 times."""
    monkeypatch.setenv("PATH", str(LABGRID), prepend=":")
    race, stuck = run_race(tmp_path, 40, seed=3)
    assert race.said["leased"] > 0
    assert sum(race.killed.values()) > 0
    assert race.said["double"] == 0
    assert not stuck
