# SPDX-License-Identifier: Apache-2.0
"""Current and energy beside latency: what a meter saw is integrated rightly, or is absent and says why."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hil.base.errors import ConfigError, RigError
from hil.boards.current import Meter
from hil.boards.current.ppk2 import Calibration, Ppk2, Ppk2Decoder, regulator_set
from hil.boards.current_sampling import Meters, check_meter
from hil.boards.current_track import Spans, Track, drawn_in, joined
from hil.boards.rack import Board, Power, load_rack
from hil.boards.rack.check import check_rack
from hil.boards.rack.current import Current
from hil.model import Case, Series
from hil.wire import Note
from tests.boards.current_stand_ins import Ppk2StandIn, encode, metadata

CASE = Case("publish", {"qos": 1})
BOARD = Board("a", "physical", "esp32", "/dev/ttyUSB0", Power("none"))


def wave(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Draw 20 mA, and 180 mA for a tenth of each 20 ms: 36 mA on average, in two ranges."""
    return np.where(seconds % 0.02 < 0.002, 0.180, 0.020)


def ppk2(path: str, mode: str = "source") -> Current:
    return Current("ppk2", Ppk2(path, 3300, mode))


def series(stretches: tuple[tuple[float, float], ...], **columns: tuple[int, ...]) -> Series:
    columns = columns or {"sent_us": (10, 20, 0, 40)}
    return Series(CASE, columns, 0, "esp_timer", "f" * 64, "ruler", 1, stretches=stretches)


def decoded(amps: NDArray[np.float64], pieces: int = 1) -> NDArray[np.float64]:
    """Return the µA that are made of these currents, taken in pieces of any length."""
    data = encode(amps, 0, 3300)
    decoder = Ppk2Decoder(Calibration.parse(metadata(2, 3300).decode()), 3300)
    cuts = [round(len(data) * part / pieces) for part in range(pieces + 1)]
    return np.concatenate([decoder.feed(data[a:b])[0] for a, b in pairwise(cuts)])


# A step up into the largest range and two down; and what the library ppk2-api 0.9.2 makes of encode() of them
STEPS_A = [2e-3] * 3 + [0.2] * 6 + [3e-3] * 5 + [20e-6] * 5
PUBLISHED_UA = [
    *[1999.6432897903824] * 5, 13864.087581585252, *[199740.38148637157] * 3, 91017.07787875277,
    75174.33919375809, 62183.29347206245, *[3001.8629621156156] * 2, 35095.87721665364, 28782.221927966446,
    23605.024591242953, *[20.014501724796236] * 2,
]  # fmt: skip


def test_the_samples_are_decoded_as_the_public_library_does() -> None:
    """Each range has its factors, and the ringing after a change of range is averaged by Nordic's filter."""
    assert decoded(np.array(STEPS_A)) == pytest.approx(PUBLISHED_UA, rel=1e-9)
    assert decoded(np.array(STEPS_A), pieces=11) == pytest.approx(PUBLISHED_UA, rel=1e-9)


@pytest.mark.parametrize("amps", [3e-6, 30e-6, 300e-6, 3e-3, 30e-3, 0.3, 0.9])
def test_each_range_is_exact_to_its_step(amps: float) -> None:
    """A steady current of any size is read as what it is, to one step of the converter."""
    assert decoded(np.full(100, amps)) == pytest.approx(amps * 1e6, rel=0.02)


def test_a_calibration_that_says_no_resistor_keeps_the_usual_one() -> None:
    """0 Ω would make each current infinite; a value that is no number is an error."""
    assert Calibration.parse("R4: 0.000\nUG4: 1.5\nEND").factors["R"][4] == 0.043
    with pytest.raises(ValueError, match="many"):
        Calibration.parse("R4: many\nEND")


def test_the_voltage_is_told_in_whole_millivolts() -> None:
    """800 mV is 3, 32: what is known of the protocol."""
    assert regulator_set(800) == bytes((0x0D, 3, 32))
    assert regulator_set(3300) == struct.pack(">BH", 0x0D, 3300)


def test_lost_samples_are_counted_by_their_counter() -> None:
    """The counter of six bits tells how many samples are missing between two, across pieces too."""
    data = encode(np.full(200, 1e-3), 0, 3300)
    decoder = Ppk2Decoder(Calibration.parse(""), 3300)
    assert decoder.feed(data[: 4 * 100])[2].sum() == 0
    lost = decoder.feed(data[4 * 130 :])[2]
    assert (lost[0], lost.sum()) == (30, 30)


@pytest.mark.slow
def test_energy_is_the_integral_of_a_known_wave(tmp_path: Path) -> None:
    """A PPK2 that feeds the board: 3.3 V · 36 mA over the window are its energy, shared among 3 messages."""
    with Ppk2StandIn(wave) as device:
        board = replace(BOARD, current=ppk2(device.path))
        meters = Meters(tmp_path)
        meters.prepare(board)
        with meters.beside(board, CASE) as sampling:
            began = time.monotonic()
            while time.monotonic() < began + 0.6:
                time.sleep(0.05)
            sampling.series = series(((began, began + 0.2), (began + 0.3, began + 0.5)))
        facts = sampling.facts
        with meters.beside(board, CASE) as sampling:
            sampling.series = series(())
        meters.close()
    touched = [command for command in device.commands if command not in (b"\x06", b"\x07")]
    assert touched == [b"\x19", b"\x11\x02", b"\x0d\x0c\xe4", b"\x0c\x01"]  # the supply is set up once
    assert (device.mode, device.vdd_mv, device.feeds) == (2, 3300, True)
    assert "error" not in facts, facts
    assert facts["mean_current_na"] == pytest.approx(36e6, rel=0.02)
    assert facts["energy_per_message_nj"] == pytest.approx(3.3 * 36e-3 * 0.4 / 3 * 1e9, rel=0.02)
    assert facts["peak_current_na"] == pytest.approx(180e6, rel=0.02)
    assert (facts["messages"], facts["file"]) == (3, "current/a/01-publish.npz")
    with np.load(tmp_path / str(facts["file"])) as kept:
        inside = (kept["start_s"] >= 0) & (kept["end_s"] <= 0.5)
        assert kept["mean_ua"][inside].mean() == pytest.approx(36e3, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        ({"gone_after": 20_000}, "PPK2 /dev/pts/.* was disconnected"),
        ({"silent": True}, "sent no samples within 0.3 s"),
        ({"lose": range(15_000, 15_040)}, ""),
        ({"lose": range(10_000, 40_000)}, "lost 0.* s of the 0.500 s"),
        ({"draws": lambda seconds: np.full(len(seconds), 1.2)}, "beyond its range"),
    ],
)
def test_what_is_wrong_with_a_meter_is_named_and_its_figures_are_absent(
    tmp_path: Path, trouble: dict[str, object], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The case's own samples stay; of the current there is a sentence, no 0, nor what is too small as it was
    clipped. A few lost are made up for."""
    if "silent" in trouble:
        monkeypatch.setattr("hil.boards.current.ppk2._FIRST_SAMPLE_S", 0.3)
    with Ppk2StandIn(**{"draws": wave, **trouble}) as device:  # type: ignore[arg-type]
        board = replace(BOARD, current=ppk2(device.path))
        meters = Meters(tmp_path)
        with meters.beside(board, CASE) as sampling:
            began = device.began_s or time.monotonic()  # what is lost stands at times of the meter's
            while time.monotonic() < began + 0.6:
                time.sleep(0.05)
            sampling.series = series(((began, began + 0.5),))
        meters.close()
    if sentence:
        assert re.search(sentence, str(sampling.facts["error"]))
        assert not {key for key in sampling.facts if key.endswith(("_na", "_nj"))}
    else:
        assert sampling.facts["mean_current_na"] == pytest.approx(36e6, rel=0.02)


def test_a_board_without_a_meter_has_no_figures(tmp_path: Path) -> None:
    """Nothing is opened, nothing is kept, nothing stands in the record."""
    meters = Meters(tmp_path)
    meters.prepare(BOARD)
    with meters.beside(BOARD, CASE) as sampling:
        sampling.series = series(((0.0, 1.0),))
    assert sampling.facts == {}
    assert list(tmp_path.iterdir()) == []


def test_sampling_ends_where_the_case_fails(tmp_path: Path) -> None:
    """The case's error goes on; the meter was told to stop."""
    meter = ScriptedMeter([])
    board = replace(BOARD, current=ppk2("METER"))
    with pytest.raises(RigError, match="the broker"), Meters(tmp_path, lambda _: meter).beside(board, CASE):
        raise RigError("the broker died")
    assert meter.calls[0] == "begin"
    assert meter.calls[-1] == "end"


class ScriptedMeter:
    """A meter that has seen these spans, by seconds from 100 of the host's on."""

    origin_s, resolution_ua = 100.0, 0.2

    def __init__(self, seen: list[tuple[float, float, float]]) -> None:
        self.calls: list[str] = []
        self._seen = seen

    def begin(self) -> None:
        self.calls.append("begin")

    def read(self) -> Spans:
        time.sleep(0.001)
        return spans([])

    def end(self) -> Spans:
        self.calls.append("end")
        return spans(self._seen)

    def close(self) -> None:
        self.calls.append("close")


def spans(seen: list[tuple[float, float, float]]) -> Spans:
    start, end, ua = (
        (np.array(column, float) for column in zip(*seen, strict=True)) if seen else (np.empty(0),) * 3
    )
    return Spans(
        start, end, ua, ua, np.full(len(start), 3000.0), np.zeros(len(start), int), np.zeros(len(start))
    )


@pytest.mark.parametrize(
    ("resolution_ua", "sleeping_ua", "facts"),
    [
        (0.2, 12.5, {"sleep_current_na": 12_500}),
        (1000.0, 0.0, {"sleep_error": "PPK2 METER tells no sleep current below 10000 µA"}),
    ],
)
def test_the_sleep_current_is_of_the_time_asleep_alone(
    tmp_path: Path, resolution_ua: float, sleeping_ua: float, facts: dict[str, object]
) -> None:
    """The bench says when its board sleeps; a meter that is too coarse for it says so instead of 0."""
    meter = ScriptedMeter([(0.0, 1.0, 80_000.0), (1.0, 2.0, sleeping_ua), (2.0, 3.0, 80_000.0)])
    meter.resolution_ua = resolution_ua
    board = replace(BOARD, current=ppk2("METER"))
    with Meters(tmp_path, lambda _: meter).beside(board, CASE) as sampling:
        sampling.note(Note(1, 1, "asleep", {"ms": "1000"}), 101.0)
        sampling.series = series(((100.0, 103.0),), publish_us=(5, 5))
    sleeping = {key: value for key, value in sampling.facts.items() if key.startswith("sleep")}
    assert sleeping == facts
    assert sampling.facts["mean_current_na"] == round((160_000 + sleeping_ua) / 3 * 1000)
    assert sampling.facts["energy_per_message_nj"] == round(3 * (160_000 + sleeping_ua) / 2 * 1000)


def test_a_case_without_messages_has_no_energy_a_message(tmp_path: Path) -> None:
    """What a task switch draws is no message's; mean and peak are there."""
    board = replace(BOARD, current=ppk2("METER"))
    with Meters(tmp_path, lambda _: ScriptedMeter([(0.0, 1.0, 50_000.0)])).beside(board, CASE) as sampling:
        sampling.series = series(((100.0, 101.0),), switch_ns=(1, 2))
    assert "energy_per_message_nj" not in sampling.facts
    assert sampling.facts["mean_current_na"] == 50_000_000


def test_a_track_is_bounded_and_keeps_its_charge() -> None:
    """Beyond its size each two spans become one: coarser, with the same integral and the same peak."""
    track, parts = Track(most=1000), []
    random = np.random.default_rng(5)
    for block in range(70):
        start = np.arange(block * 50, block * 50 + 50) / 100
        ua = random.uniform(1, 1e5, 50)
        none = np.zeros(50)
        parts.append(Spans(start, start + 0.01, ua, ua + 1, np.full(50, 3300.0), none.astype(int), none))
        track.add(parts[-1])
    whole, kept = joined(parts), track.spans()
    window = [(0.0, 35.0)]
    assert len(kept) <= 1000 < len(whole)
    assert drawn_in(kept, window).energy_uj == pytest.approx(drawn_in(whole, window).energy_uj, rel=1e-9)
    assert drawn_in(kept, window).peak_ua == drawn_in(whole, window).peak_ua


def test_a_rack_check_looks_at_each_meter(tmp_path: Path) -> None:
    """A meter that the host has not is a finding of its own, with those that it has, before the board that it
    may feed. A meter that answers is said with its current; one that is not there with what to do."""
    path = tmp_path / "rack.yaml"
    path.write_text(RACK.replace("CURRENT", "{type: ppk2, serial: F00D, voltage_mv: 3300, mode: source}"))
    subjects = {found.subject: found for found in check_rack(load_rack(path), tmp_path, served={})}
    assert "F00D; on USB there are: " in subjects["current of a"].sentence
    assert list(subjects).index("current of a") < list(subjects).index("a")
    seen: Callable[[Current], Meter] = lambda _: ScriptedMeter([(0.0, 1.0, 42_000.0)])  # noqa: E731
    board = replace(BOARD, current=ppk2("METER"))
    assert check_meter(board, seen).sentence == "PPK2 METER measures 42.000 mA"
    absent = check_meter(replace(BOARD, current=ppk2("/dev/no-such-port")))
    assert (absent.ok, absent.subject) == (False, "current of a")
    assert "/dev/no-such-port" in absent.sentence


@pytest.mark.slow
def test_another_device_is_no_ppk2(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that answers something else, or nothing, is named once its time is up."""
    monkeypatch.setattr("hil.boards.current.ppk2._META_DEADLINE_S", 0.3)
    with Ppk2StandIn(wave, mute=True) as device, pytest.raises(RigError, match="sent no calibration"):
        ppk2(device.path).open()


RACK = """schema: 1
name: lab
host: {interface: eth0, address: 192.168.77.1}
access_point: {type: external, ssid: lab, psk_env: PSK}
boards:
  - id: a
    kind: physical
    target: esp32
    serial: /dev/a
    current: CURRENT
"""


METER = "{type: ppk2, serial: D4C0, voltage_mv: 3300, mode: source}"


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ("{type: ppk2, serial: x, voltage_mv: 12000, mode: source}", "rack.yaml:10.*voltage_mv.*800.*5000"),
        ("{type: ppk2, serial: x, voltage_mv: 3300}", "rack.yaml:10.*mode"),
        ("{type: shelly}", "rack.yaml:10.*ppk2"),
        (
            f"{METER}\n  - {{id: b, kind: physical, target: esp32, serial: /dev/b, current: {METER}}}",
            "'PPK2 D4C0'",
        ),
    ],
)
def test_a_rack_file_names_the_meter_of_one_board(tmp_path: Path, section: str, sentence: str) -> None:
    """By its USB serial number; its voltage and how it is wired stand beside it. A wrong section is told with
    file, line, value and what is possible; two boards at one meter would each have the other's current."""
    path = tmp_path / "rack.yaml"
    path.write_text(RACK.replace("CURRENT", METER))
    assert load_rack(path).boards[0].current == ppk2("D4C0")
    path.write_text(RACK.replace("CURRENT", section))
    with pytest.raises(ConfigError, match=sentence):
        load_rack(path)
