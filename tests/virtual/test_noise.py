# SPDX-License-Identifier: Apache-2.0
"""The virtual rack's simulated noise: what is drawn, what it does to a link, and who may ask for it."""

from __future__ import annotations

import math
import os
import re
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, RigError
from hil.boards.rack import Rack, load_rack
from hil.boards.rack.noise import Bistable, BoardDrift, NoiseSettings
from hil.run.run_air import RunAir
from hil.virtual.air.control import AirControl
from hil.virtual.air.profile import load_profile
from hil.virtual.noise import (
    Noise,
    NoiseProfile,
    choose_noise,
    load_noise_profile,
    load_noise_profiles,
    scaled,
)
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import send_packets, start_rack
from tests.boards.test_rack import RACK as RACK_TEXT
from tests.boards.test_rack import write
from tests.lab import descendants, wait_for

RACKS = Path(__file__).resolve().parents[2] / "hil" / "racks"
RACK = load_rack(RACKS / "virtual.yaml")
V1, V2 = RACK.boards[:2]
LAB = load_profile("lab")
TYPICAL = load_noise_profile("typical")
# (session, boot) of v1 and v2, two boots each
FROZEN = [(0.022686, -0.049678), (0.022686, -0.038634), (-0.021141, -0.036507), (-0.021141, 0.029519)]
VIRTUAL_POINT = "{type: virtual, profile: lab, seed: 7}"


def noise(run: str = "run-1", profile: NoiseProfile = TYPICAL, **settings: Any) -> Noise:
    return Noise(replace(NoiseSettings(profile.name, seed=7), **settings), profile, run)


def rack_with(folder: Path, section: str) -> Rack:
    point = VIRTUAL_POINT.removesuffix("}") + f", noise: {section}}}"
    return load_rack(write(folder, RACK_TEXT.replace(VIRTUAL_POINT, point)))


def test_draws_are_frozen() -> None:
    """The offsets of a seed, session, board and boot are these for ever: a stored run can be repeated."""
    drawn = [noise().draw(board, boot) for board in ("v1", "v2") for boot in (0, 1)]
    assert [(round(draw.session_offset, 6), round(draw.boot_offset, 6)) for draw in drawn] == FROZEN
    assert noise().draw("v1", 1) == noise().draw("v1", 1)


def test_every_word_of_a_draw_counts() -> None:
    """Another seed, session, board or boot gives other offsets; a named session gives its own again."""
    known = noise().draw("v1", 0)
    assert noise(seed=8).draw("v1", 0).boot_offset != known.boot_offset
    assert noise("run-2").draw("v1", 0).session_offset != known.session_offset
    assert noise().draw("v2", 0).session_offset != known.session_offset
    assert noise().draw("v1", 1).boot_offset != known.boot_offset
    assert noise().draw("v1", 1).session_offset == known.session_offset
    assert noise("run-2", session="run-1").draw("v1", 0) == known


@pytest.mark.parametrize("name", ["quiet", "typical", "noisy"])
def test_offsets_are_as_wide_as_the_profile_says(name: str) -> None:
    """Sessions and boots have the profile's deviations, and every twentieth boot is of the wide sort."""
    profile = load_noise_profile(name)
    drawn = [noise(f"run-{session}", profile).draw("v1", 0) for session in range(4000)]
    boots = [draw.boot_offset / profile.boot for draw in drawn]
    assert statistics.stdev(draw.session_offset for draw in drawn) == pytest.approx(profile.session, rel=0.05)
    assert statistics.median(map(abs, boots)) == pytest.approx(0.70, rel=0.05)  # 0.674 without bad boots
    wide = sum(abs(boot) > 4 for boot in boots) / len(boots)
    assert wide == pytest.approx(profile.bad_boots * 0.253, rel=0.4)  # P(|N(0, 3.5)| > 4)
    assert abs(statistics.fmean(boots)) < 0.1


def test_a_drift_a_second_mode_and_a_step_are_added() -> None:
    """One board drifts from boot to boot, boots of a bistable one end in either mode, a step moves all."""
    drift = noise(drift=BoardDrift("v1", 0.01))
    assert [drift.draw("v1", boot).drift_offset for boot in (0, 1, 5)] == [0.0, 0.01, 0.05]
    assert drift.draw("v2", 5).drift_offset == 0
    stepped = noise(drift=BoardDrift("v1", step=0.4, at_boot=3))
    assert [stepped.draw("v1", boot).drift_offset for boot in (0, 2, 3, 9)] == [0.0, 0.0, 0.4, 0.4]
    bistable = noise(bistable=Bistable(0.3, 0.08, "v1"))
    modes = [bistable.draw("v1", boot) for boot in range(400)]
    assert {(draw.mode, draw.mode_offset) for draw in modes} == {(0, 0.0), (1, 0.08)}
    assert sum(draw.mode for draw in modes) / 400 == pytest.approx(0.3, abs=0.08)
    assert bistable.draw("v2", modes.index(max(modes, key=lambda draw: draw.mode))).mode == 0
    plain, moved = noise().draw("v2", 3), noise(session_step=0.15).draw("v2", 3)
    assert moved.offset - plain.offset == pytest.approx(0.15)


def test_an_offset_stretches_delay_and_jitter_both_ways() -> None:
    """exp(offset) times the delays and the jitter; rate, limits and gaps stay what they are."""
    longer = scaled(LAB, math.log(1.1))
    for old, new in ((LAB.uplink, longer.uplink), (LAB.downlink, longer.downlink)):
        assert (new.delay_us, new.jitter_us) == (3300, 1100)
        assert replace(new, delay_us=old.delay_us, jitter_us=old.jitter_us) == old
    assert longer.gap == LAB.gap


def test_a_noisy_link_is_in_force(running: VirtualRack) -> None:
    """Each board's link is as its boot drew it, and the record says so."""
    with_noise = noise()
    air = RunAir(running, [V1.id, V2.id], LAB, with_noise)
    air.begin_boot(V1)
    air.apply()
    factor = math.exp(with_noise.draw(V1.id, 0).offset)
    assert running.air.show(V1.id)[V1.id]["uplink"]["delay_us"] == round(3000 * factor)
    assert running.air.show(V2.id)[V2.id]["uplink"]["delay_us"] == 3000  # it has not booted
    groups = air.environment(V1)
    assert groups["noise"] == with_noise.environment(V1.id, 0)
    assert groups["noise"]["simulated"] is True
    assert "noise" not in air.environment(V2)
    air.begin_boot(V1)
    air.apply()
    assert air.environment(V1)["noise"] == with_noise.environment(V1.id, 1)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[VirtualRack]:
    started = start_rack(tmp_path, boards=(V1.id, V2.id), profile=LAB)
    yield started
    started.stop()


def let_air_stand_still() -> None:
    """For longer than a host's load would, with no frame in it."""
    air_pid = next(one.pid for one in descendants(os.getpid()) if "hil-air" in one.name)
    for number, wait_s in ((signal.SIGSTOP, 1.3), (signal.SIGCONT, 0.0)):
        os.kill(air_pid, number)
        time.sleep(wait_s)


@pytest.mark.slow
def test_an_air_that_stood_still_before_a_case_is_none_of_it(running: VirtualRack) -> None:
    """Rule: what became of a run that is over spoils nothing of the next one on the same rack."""
    air = RunAir(running, [V1.id], LAB, None)
    let_air_stand_still()
    air.begin_case(V1)
    air.check_case(V1)


def test_packets_that_the_host_throws_away_are_the_rigs_fault(running: VirtualRack, tmp_path: Path) -> None:
    """Rule: where a rule of the host drops what a board sent, the case says nothing of the firmware."""

    def run_inside(*argv: str, netns: str = "rack") -> None:
        assert running.spawn(argv, netns=netns, log_path=tmp_path / "log").wait(10) == 0

    air = RunAir(running, [V1.id], LAB, None)
    air.apply()
    run_inside("nft", "table ip test { chain in { type filter hook input priority 0; udp dport 9 drop; }; }")
    send = "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('%s', 9))"
    air.begin_case(V1)
    run_inside(sys.executable, "-c", send % running.host_address, netns=V1.id)
    wait_for(lambda: running.way_of(V1.id).dropped_count == 1, lambda: "nothing was dropped")
    with pytest.raises(RigError, match="dropped 1 packets"):
        air.check_case(V1)
    air.begin_case(V1)
    air.check_case(V1)


def test_what_others_send_to_a_board_is_the_rigs_fault(running: VirtualRack, tmp_path: Path) -> None:
    """Rule: where the host sends a board much that nobody of the run sends, the case says nothing of the
    firmware; a few packets are noise, and what a case's peer sends is the run's."""
    address = running.board_address(V1.id)
    air = RunAir(running, [V1.id], LAB, None)
    air.apply()
    air.begin_case(V1)
    send_packets(running, 5, address, tmp_path)
    air.check_case(V1)
    air.begin_case(V1)
    send_packets(running, 500, address, tmp_path)
    with pytest.raises(RigError, match=rf"board {V1.id} 0\.51 MB"):
        air.check_case(V1)
    air.begin_case(V1)
    air.sends_to(V1, 9)
    send_packets(running, 500, address, tmp_path)
    air.check_case(V1)
    air.begin_case(V1)
    # what the run did in another case explains nothing here
    send_packets(running, 500, address, tmp_path)
    with pytest.raises(RigError, match=r"0\.51 MB"):
        air.check_case(V1)


@pytest.mark.slow
def test_an_air_that_somebody_changes_is_the_rigs_fault(running: VirtualRack, tmp_path: Path) -> None:
    """Left changed, or put back: its case says nothing of the firmware. What the run does itself is none,
    nor what is done to another board's link, or before the case."""
    air, somebody = RunAir(running, [V1.id], LAB, noise()), AirControl(running.air.socket_path)
    somebody.set(V2.id, delay_us=1)
    air.begin_boot(V1)
    air.begin_case(V1)  # one that does without the air: what the boot drew is not in force yet
    air.check_case(V1)
    air.apply()
    assert running.air.show(V2.id)[V2.id]["uplink"]["delay_us"] == 1  # another run's
    air.begin_case(V1)
    running.air.down(V1.id)
    running.air.up(V1.id)
    somebody.down(V2.id)
    air.check_case(V1)
    somebody.down(V1.id)
    somebody.up(V1.id)
    with pytest.raises(RigError, match="was changed meanwhile"):
        air.check_case(V1)
    air.begin_case(V1)
    air.check_case(V1)
    let_air_stand_still()
    with pytest.raises(RigError, match=rf"board {V1.id} stood still for 1\.\d s"):
        air.check_case(V1)
    air.check_case(V1)
    port = running.access_point_interface(V1.id)
    for words in (f"link set {port} down", "neigh flush all", f"link set {port} up"):
        assert running.spawn(["ip", *words.split()], log_path=tmp_path / "ip.log").wait(10) == 0
        ping = ["ping", "-c", "1", "-w", "1", running.host_address]
        running.spawn(ping, netns=V1.id, log_path=tmp_path / "ping.log").wait(10)
    with pytest.raises(RigError, match=f"port of board {V1.id} was down"):
        air.check_case(V1)
    air.check_case(V1)
    running.air.set(V1.id, delay_us=1)  # a peer that does not clear up after itself
    with pytest.raises(RigError, match="was changed meanwhile"):
        air.check_case(V1)
    air.apply()
    air.begin_case(V1)
    air.check_case(V1)
    flush = ["ip", "address", "flush", "dev", "wlan0"]
    assert running.spawn(flush, netns=V1.id, log_path=tmp_path / "ip.log").wait(10) == 0
    with pytest.raises(RigError, match=f"Board {V1.id} no longer has the address"):
        air.check_case(V1)


def test_without_noise_nothing_says_simulated(running: VirtualRack) -> None:
    """The default is off: no group noise, the air is the profile's."""
    assert RACK.access_point.noise is None
    assert choose_noise(RACK, "") is None
    air = RunAir(running, [V1.id], LAB, None)
    air.begin_boot(V1)
    air.apply()
    assert set(air.environment(V1)) == {"air"}
    assert running.air.show(V1.id)[V1.id]["downlink"]["delay_us"] == 3000


def test_a_rack_file_asks_for_noise_and_options_change_it(tmp_path: Path) -> None:
    """All keys arrive; --noise replaces the profile, ``none`` switches it off; a wrong one has a nearest."""
    section = (
        "{profile: noisy, seed: 3, session: s1, session_step: 15 %, drift: {board: b, per_boot: 1 %}, "
        "bistable: {probability: 30 %, offset: 8 %, board: a}}"
    )
    rack = rack_with(tmp_path, section)
    expected = NoiseSettings("noisy", 3, "s1", 0.15, BoardDrift("b", 0.01), Bistable(0.3, 0.08, "a"))
    assert rack.access_point.noise == expected
    assert choose_noise(rack, "") == expected
    assert choose_noise(rack, "quiet") == replace(expected, profile="quiet")
    assert choose_noise(rack, "none") is None
    assert choose_noise(RACK, "typical") == NoiseSettings("typical")
    with pytest.raises(ConfigError, match="'typical'"):
        choose_noise(RACK, "typicl")


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{profil: typical}", ["rack.yaml:4", "'profil'", "'profile'"]),
        ("{profile: typical, drift: {board: c, per_boot: 1 %}}", ["rack.yaml:4", "no board 'c'", "a, b"]),
        ("{profile: typical, drift: {board: a, per_boot: 400 %}}", ["rack.yaml:4", "per_boot"]),
        ("{profile: typical, bistable: {probability: 2, offset: 1 %}}", ["rack.yaml:4", "probability"]),
        ("{profile: typical, seed: -1}", ["rack.yaml:4", "seed"]),
    ],
)
def test_a_mistake_in_the_section_names_its_line(tmp_path: Path, section: str, words: list[str]) -> None:
    """Unknown keys, boards and values out of range are errors with file, line and what is possible."""
    with pytest.raises(ConfigError) as caught:
        rack_with(tmp_path, section)
    assert all(word in str(caught.value) for word in words), caught.value


def physical(folder: Path, more: str = "") -> Path:
    point = f"{{type: external, ssid: lab, psk_env: PSK{more}}}"
    text = RACK_TEXT.replace(VIRTUAL_POINT, point).replace("kind: virtual", "kind: physical")
    return write(folder, text.replace("    power: {type: virtual}\n", ""))


def test_a_real_access_point_has_no_simulated_noise(tmp_path: Path) -> None:
    """Neither its rack file nor an option may ask for it."""
    with pytest.raises(ConfigError, match=r"rack.yaml:4: noise"):
        load_rack(physical(tmp_path, ", noise: {profile: typical}"))
    rack = load_rack(physical(tmp_path))
    for profile in ("typical", "none"):
        with pytest.raises(ConfigError, match="rack r has a real access point"):
            choose_noise(rack, profile)


def test_a_person_is_told() -> None:
    """The sentence at the start and run.json name profile, seed and whatever was added, and say simulated."""
    told = noise(drift=BoardDrift("v2", 0.01, 0.4, 3), session_step=-0.05, bistable=Bistable(0.3, 0.08))
    numbers = ["4 %", "3 %", "seed 7", "-5 %", "+1 %", "+40 %", "boot 3", "30 %", "+8 %"]
    assert re.findall(r"[+-]?\d+ %|seed \d+|boot \d+", told.sentence()) == numbers
    assert told.sentence().startswith("Simulated noise")
    assert "typical" in told.sentence()
    assert told.info().simulated is True
    assert told.info().description in told.sentence()


def test_the_profiles_are_the_ones_that_the_gate_was_simulated_with() -> None:
    """quiet, typical, noisy: boots 2, 4, 8 %, sessions 1, 3, 6 %."""
    found: Mapping[str, NoiseProfile] = load_noise_profiles()
    widths = {"quiet": (0.02, 0.01), "typical": (0.04, 0.03), "noisy": (0.08, 0.06)}
    assert {name: (p.boot, p.session) for name, p in found.items()} == widths
    assert {(p.bad_boots, p.bad_boot_factor) for p in found.values()} == {(0.05, 3.5)}
