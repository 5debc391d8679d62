# SPDX-License-Identifier: Apache-2.0
"""The figures of `make bench`: how their command goes through them, what they read, the truth of losses."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import dpkt
import pytest

from hil.network.ledger.points import POINTS, Owner
from tests.firmware.case_defaults import case_defaults
from tests.lab import ROOT
from tests.make_records import bench_record
from tools.bench import __main__ as command
from tools.bench.figure import SHORT_PASS, Figure
from tools.bench.lease_share import measuring_s
from tools.bench.loss_compared import MESSAGES_MIN, Compared, figure_of
from tools.bench.loss_scenarios import SCENARIOS
from tools.bench.loss_truth import Truth, numbers_at, numbers_in, places_plain, reached_from

_SOURCES = sorted((ROOT / "firmware" / "components" / "benches").glob("*.c"))
_COLUMNS = re.compile(r"\bCOLUMNS\[\] = \{([^}]*)\}")


def columns_of_benches() -> dict[str, tuple[str, ...]]:
    """Return the columns that the firmware gives to each bench that has a thresholds file."""
    found = {source.stem: _COLUMNS.search(source.read_text()) for source in _SOURCES}
    benches = [path.stem for path in (ROOT / "thresholds").glob("*.yaml")]
    return {bench: tuple(re.findall(r'"(\w+)"', str(found[bench]))) for bench in sorted(benches)}


def test_how_long_a_record_took_is_no_matter_of_its_columns() -> None:
    """The seconds of all benches add up; there are benches without ``done_us``, so this means something."""
    columns = columns_of_benches()
    assert all(columns.values())
    assert [bench for bench, names in columns.items() if "done_us" not in names]
    records = [
        bench_record(bench, case_defaults(bench), dict.fromkeys(names, (1, 2)), {}, run_id="r")
        for bench, names in columns.items()
    ]
    assert measuring_s(replace(record, measured_s=1.5) for record in records) == 1.5 * len(columns)


def test_a_record_that_does_not_say_how_long_it_took_is_named() -> None:
    """A share of what nobody kept would be a wrong figure; one of no record at all too."""
    older = bench_record("memory", {}, {"raw_cycles": (1,)}, {}, run_id="r")
    with pytest.raises(ValueError, match="memory/"):
        measuring_s([older])
    with pytest.raises(ValueError, match="no record"):
        measuring_s([])


KEPT = Figure("kept", ("", "s"), [("it", "1")])
LATE = replace(KEPT, title="late", missed=["1 s"])
WRONG = replace(KEPT, title="wrong", missed=["one byte"], exact=True)


@dataclass
class Given:
    """Figures that a test makes up: what they are, or what they raise. ``boards`` tells of boards had."""

    on_board: dict[str, Figure | Exception] = field(default_factory=dict)
    alone: dict[str, Figure | Exception] = field(default_factory=dict)
    boards: list[str] = field(default_factory=list)

    def run(self, monkeypatch: pytest.MonkeyPatch, *, short: bool = False) -> int:
        monkeypatch.setattr(command, "workbench", self._workbench)
        monkeypatch.setattr(command, "ON_BOARD", {name: measured(one) for name, one in self.on_board.items()})
        monkeypatch.setattr(command, "ALONE", {name: measured(one) for name, one in self.alone.items()})
        return command.run([*self.on_board, *self.alone], short=short)

    @contextmanager
    def _workbench(self) -> Iterator[str]:
        self.boards.append("had")
        yield "board"
        self.boards.append("given back")


def measured(given: Figure | Exception) -> Callable[..., Figure]:
    def measure(*_bench: object, short: bool) -> Figure:
        if isinstance(given, Exception):
            raise given
        return given

    return measure


def test_a_figure_that_breaks_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are measured and printed, the end names the broken one, and the exit status is 2."""
    given = Given(alone={"one": KeyError("done_us"), "two": LATE, "three": KEPT})
    assert given.run(monkeypatch) == 2
    said = capsys.readouterr()
    assert "KeyError: 'done_us'" in said.err
    assert [name for name in ("late", "kept") if name in said.out] == ["late", "kept"]
    assert said.out.splitlines()[-2:] == ["broken: one", "aims missed: two"]


def test_a_board_is_had_anew_after_a_figure_that_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures share a board; one that broke may have left it in any state. No other keeps the rack."""
    given = Given({"one": KEPT, "two": OSError(), "three": KEPT, "four": KEPT}, {"five": KEPT})
    assert given.run(monkeypatch) == 2
    assert given.boards == ["had", "given back"] * 2


@pytest.mark.parametrize(
    ("figure", "whole", "short"),
    [(KEPT, 0, 0), (LATE, 1, 0), (WRONG, 1, 1)],
    ids=lambda one: getattr(one, "title", ""),
)
def test_a_short_pass_fails_by_exact_aims_alone(
    figure: Figure,
    whole: int,
    short: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a clock says of a few samples decides nothing, a wrong byte does; and it is said to be short.

    Wall and processor time stand below each figure.
    """
    given = Given(alone={"one": figure})
    assert given.run(monkeypatch) == whole
    said = capsys.readouterr().out
    assert SHORT_PASS not in said
    assert re.search(r"^one: \d+\.\d s, of the processors \d+\.\d s$", said, re.MULTILINE)
    assert given.run(monkeypatch, short=True) == short
    assert capsys.readouterr().out.startswith(SHORT_PASS)


def test_a_figure_that_does_not_exist_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown name is the caller's error, answered by the names there are; `--list` says of each what it
    measures."""
    with pytest.raises(SystemExit) as raised:
        command.main(["nonsense"])
    assert raised.value.code == 2
    assert "lease-share" in capsys.readouterr().err
    assert command.main(["--list"]) == 0
    listed = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _sentence in listed] == list(command.FIGURES)


BOARD, HOST, PORT, OWN_PORT, RUN = "10.77.0.2", "10.77.0.1", 1883, 50_000, 7
FIRST = (1 << 32) - 100  # sequence numbers wrap
SYN, ACK, RST = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK, dpkt.tcp.TH_RST


def publish(number: int, *, run: int = RUN, qos: int = 0) -> bytes:
    payload = json.dumps({"n": number, "run": run, "pad": "x" * 120}).encode()
    body = b"\x00\x01t" + (b"\x00\x05" if qos else b"") + payload
    return bytes([0x30 | qos << 1, len(body) & 0x7F | 0x80, len(body) >> 7]) + body


def frame(at: int, data: bytes = b"", *, flags: int = ACK, down: bool = False, ack: int = 0) -> bytes:
    """Return a frame from the board with its position in the stream, or one to it that acknowledges."""
    ends = (PORT, OWN_PORT) if down else (OWN_PORT, PORT)
    sequence = 0 if down else (FIRST + at) % (1 << 32)
    tcp = dpkt.tcp.TCP(
        sport=ends[0], dport=ends[1], seq=sequence, ack=(FIRST + ack) % (1 << 32), flags=flags, data=data
    )
    source, destination = (HOST, BOARD) if down else (BOARD, HOST)
    ip = dpkt.ip.IP(src=socket.inet_aton(source), dst=socket.inet_aton(destination), p=6, data=tcp)
    ip.len = len(ip)
    return bytes(dpkt.ethernet.Ethernet(src=b"\x02" * 6, dst=b"\x04" * 6, data=ip))


def capture(path: Path, frames: Iterable[tuple[int, bytes]]) -> Path:
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, nano=False)
        for time_us, content in frames:
            writer.writepkt(content, ts=1000 + time_us / 1e6)
    return path


def test_a_message_is_transmitted_when_every_byte_of_it_was_sent(tmp_path: Path) -> None:
    """Put together from segments in any order, sent twice or cut differently; the last one is cut off."""
    stream = publish(1) + publish(2, run=9) + publish(3, qos=1) + publish(4)
    cut = len(stream) - 1
    frames = [
        (0, frame(-1, flags=SYN)),
        (1, frame(0, stream[:50])),
        (2, frame(150, stream[150:cut])),
        (3, frame(40, stream[40:160])),
    ]
    path = capture(tmp_path / "a.pcap", frames)
    assert [place.number for place in places_plain(path, PORT, RUN)] == [1, 3]
    assert places_plain(path, PORT + 1, RUN) == []


def test_a_message_reached_the_host_that_acknowledged_or_reset_it(tmp_path: Path) -> None:
    """An acknowledgement of its last byte, or a reset in answer to a segment with it; nothing else."""
    size = len(publish(1))
    stream = b"".join(publish(number) for number in range(1, 5))
    frames = [
        (0, frame(-1, flags=SYN)),
        (1, frame(0, stream)),
        (2, frame(0, down=True, ack=size)),
        (900_000, frame(size, stream[size : 2 * size])),
        (901_000, frame(0, down=True, flags=RST | ACK, ack=size)),
    ]
    path = capture(tmp_path / "a.pcap", frames)
    places = places_plain(path, PORT, RUN)
    assert reached_from(path, PORT, places) == {1, 2}
    further = capture(tmp_path / "b.pcap", [frames[0], (1, frame(size + 9, stream[size + 9 : 3 * size]))])
    assert numbers_at(further, PORT, places) == {3}  # behind a hole, and yet there


@pytest.mark.parametrize(
    ("number", "takes", "owner"),
    [
        (0, Owner.ACCESS_POINT, Owner.DEVICE_CALL),
        (1, Owner.ACCESS_POINT, Owner.DEVICE_TCP),
        (2, Owner.ACCESS_POINT, Owner.ACCESS_POINT),
        (3, Owner.BROKER_IN, Owner.BROKER_OUT),
        (4, Owner.BROKER_IN, Owner.SUBSCRIBER),
        (5, Owner.BROKER_IN, Owner.ARRIVED),
        (2, None, Owner.ACCESS_POINT),
        (6, None, Owner.BROKER_IN),
        (7, None, Owner.BROKER_OUT),
    ],
)
def test_the_truth_is_where_a_message_was_last(number: int, takes: Owner | None, owner: Owner) -> None:
    """A refusal counts only for what was not sent; what was sent and lost is the fault's."""
    truth = Truth(
        outcomes=[2, 0, 2, 0, 0, 2, 0, 0],
        transmitted=frozenset(range(2, 8)),
        reached=frozenset({3, 4, 5}),
        at_access_point=frozenset({3, 4, 5, 6, 7}),
        at_broker=frozenset({3, 4, 5, 7}),
        dropped=frozenset({4}),
        arrived=frozenset({5}),
    )
    assert truth.owner_of(number, takes) is owner


def test_the_subscribers_files_are_read_by_nonce(tmp_path: Path) -> None:
    """arrivals.csv says whose a message is, dropped.csv is this case's; no file is no message."""
    (tmp_path / "a.csv").write_text(f"number,run\n1,{RUN}\n2,8\n")
    (tmp_path / "d.csv").write_text("number\n3\n")
    assert numbers_in(tmp_path / "a.csv", RUN) == {1}
    assert numbers_in(tmp_path / "d.csv", RUN) == {3}
    assert numbers_in(tmp_path / "none.csv", RUN) == frozenset()


def compared(*pairs: tuple[Owner, Owner], contradictions: tuple[str, ...] = ()) -> Compared:
    return Compared(SCENARIOS[0], "tcp", pairs, contradictions)


def test_the_measurement_fails_for_one_wrong_owner_and_for_what_it_did_not_try() -> None:
    """Wrong are another name, a loss that arrived, an arrival that is lost or unknown; no unknown loss."""
    every = tuple((Owner(point), Owner(point)) for point in POINTS)
    arrived = ((Owner.ARRIVED, Owner.ARRIVED),) * MESSAGES_MIN
    fine = compared(*every, (Owner.ACCESS_POINT, Owner.UNDETERMINED), *arrived)
    assert not figure_of([fine]).missed
    assert fine.cells()[2:7] == (str(MESSAGES_MIN + 7), "7", "6", "1", "0")
    for pair in (
        (Owner.ACCESS_POINT, Owner.BROKER_IN),
        (Owner.SUBSCRIBER, Owner.ARRIVED),
        (Owner.ARRIVED, Owner.SUBSCRIBER),
        (Owner.ARRIVED, Owner.UNDETERMINED),
    ):
        missed = figure_of([fine, compared(pair, every[0])]).missed
        assert missed == [f"{SCENARIOS[0].name}, tcp: 1 lost at {pair[0].word}, named {pair[1].word}"]
    assert "nothing was lost" in str(figure_of([fine, compared(*arrived)]).missed)
    assert "at broker_in" in str(figure_of([compared(*every[:3], *arrived)]).missed)
    assert "fewer than" in str(figure_of([compared(*every)]).missed)
    assert "it says 3" in str(figure_of([compared(*every, *arrived, contradictions=("it says 3",))]).missed)
