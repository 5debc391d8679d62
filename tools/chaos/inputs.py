# SPDX-License-Identifier: Apache-2.0
"""Bad input: rack files, thresholds, images, stored runs, ports that speak something else, hostile words."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.chaos.fault import HOSTILE, Act, Fault, Owner, answering
from tools.chaos.trial import Trial


def edited(path: Callable[[Trial], Path], change: Callable[[str], str | bytes]) -> Act:
    """Return what changes a file for one run."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        file = path(trial)
        before = file.read_bytes()
        after = change(before.decode())
        file.write_bytes(after.encode() if isinstance(after, str) else after)
        yield
        file.write_bytes(before)

    return act


def _rack(trial: Trial) -> Path:
    return trial.ground.lab.rack


def _publish(trial: Trial) -> Path:
    return trial.lab_folder / "thresholds" / "publish.yaml"


def _of_rack(name: str, change: Callable[[str], str | bytes], says: str = "rack.yaml") -> Fault:
    return Fault("input", f"rack file {name}", edited(_rack, change), "before", ("configuration",), says)


def _of_limits(name: str, change: Callable[[str], str | bytes], says: str = "publish.yaml") -> Fault:
    return Fault("input", f"thresholds {name}", edited(_publish, change), "before", ("configuration",), says)


def of_image(change: Callable[[Path], object]) -> Act:
    """Return what lets the run measure a copy of the image that was changed."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        folder = trial.ground.copy_firmware(trial)
        change(folder)
        yield
        shutil.rmtree(folder, ignore_errors=True)

    return act


def _app(folder: Path) -> Path:
    return next(path for path in folder.glob("*.bin") if path.stem.startswith("hil"))


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def stored(change: Callable[[Path], object]) -> Act:
    """Return what changes a copy of a stored run, which the command reads."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        copy = trial.lab_folder / "stored"
        shutil.copytree(trial.ground.stored_run(), copy, symlinks=True)
        change(copy)
        yield
        shutil.rmtree(copy)

    return act


def _gate(trial: Trial) -> Sequence[str]:
    return ["gate", str(trial.lab_folder / "stored")]


def _of_run(name: str, change: Callable[[Path], object], *owners: Owner, says: str = "") -> Fault:
    return Fault("input", f"stored run {name}", stored(change), "before", owners, says, command=_gate)


def _appended(text: str | bytes) -> Callable[[Path], object]:
    data = text.encode() if isinstance(text, str) else text
    return lambda folder: (folder / "records.jsonl").open("ab").write(data)


def _hostile_record(folder: Path) -> None:
    journal = folder / "records.jsonl"
    run_id = json.loads(journal.read_text().splitlines()[0])["run_id"]
    fault = {
        "type": "fault",
        "run_id": run_id,
        "owner": "rig",
        "exit_code": 3,
        "sentence": HOSTILE,
        "board": "b1",
        "case_id": "",
        "schema": 1,
    }
    journal.write_text(journal.read_text() + json.dumps(fault) + "\n")


def port_that(answers: Callable[[socket.socket], object]) -> Act:
    """Return what gives the run a rack whose one board is behind a TCP port that speaks as it likes."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        rack = trial.lab_folder / "foreign.yaml"
        with answering(answers) as port:
            rack.write_text(
                "schema: 1\nname: foreign\nhost: {interface: lo, address: 127.0.0.1}\n"
                "access_point: {type: wired}\nboards:\n"
                "  - {id: b9, kind: physical, target: esp32, power: {type: none},\n"
                "     network: {type: rmii, phy: lan87xx, clock: in},\n"
                f"     serial: 'rfc2217://127.0.0.1:{port}'}}\n"
            )
            yield
        rack.unlink()

    return act


def _check(trial: Trial) -> Sequence[str]:
    return [
        "rack",
        "check",
        "--rack",
        str(trial.lab_folder / "foreign.yaml"),
        "--out",
        str(trial.lab_folder / "foreign"),
    ]


def _noise(connection: socket.socket) -> None:
    while connection.recv(4096):
        connection.sendall(os.urandom(4096))


def _mute(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def _flood(connection: socket.socket) -> None:
    connection.settimeout(10.0)
    for _ in range(2000):
        connection.sendall(b"A" * 65536)


def _web(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


def _of_port(name: str, answers: Callable[[socket.socket], object]) -> Fault:
    return Fault("input", f"port that {name}", port_that(answers), "before", ("rig",), "b9", command=_check)


def _options(name: str, *words: str, says: str = "") -> Fault:
    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        trial.more += words
        yield

    return Fault("input", f"option {name}", act, "before", ("configuration",), says)


_BOMB = (
    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c]\n"
)
FAULTS: Sequence[Fault] = (
    _of_rack("empty", lambda _: ""),
    _of_rack("of random bytes", lambda _: os.urandom(500)),
    _of_rack("with a tab", lambda text: text.replace("  - {id", "\t- {id", 1)),
    _of_rack("with an unknown key", lambda text: text + "bords: []\n", "boards"),
    _of_rack("with one id twice", lambda text: text.replace("id: b2", "id: b1"), "b1"),
    _of_rack("with a wrong type", lambda text: text.replace("schema: 1", "schema: [1]"), "schema"),
    _of_rack("of a later version", lambda text: text.replace("schema: 1", "schema: 99"), "schema"),
    _of_rack("of 11 MB", lambda text: text + "# x\n" * 2_800_000),
    _of_rack("with aliases of aliases", lambda text: text + _BOMB),
    _of_rack("nested 5,000 deep", lambda text: text + "x: " + "[" * 5000 + "]" * 5000 + "\n"),
    _of_rack("with control characters", lambda text: text.replace("name: lab", "name: 'l\x1bab'")),
    _of_rack("with a path for an id", lambda text: text.replace("id: b1", "id: ../../b1"), "b1"),
    _of_limits("empty", lambda _: ""),
    _of_limits("torn", lambda text: text[: len(text) // 2]),
    _of_limits("of random bytes", lambda _: os.urandom(500)),
    _of_limits("with NaN", lambda text: text.replace("abs_max_ms: 25", "abs_max_ms: .nan"), "publish.yaml"),
    _of_limits(
        "with a unit of nothing", lambda text: text.replace("abs_max_ms: 25", "abs_max_parsec: 25"), "parsec"
    ),
    _of_limits("with a metric of nothing", lambda text: text.replace("of: outcome", "of: outcom"), "outcom"),
    _of_limits("of another bench", lambda text: text.replace("bench: publish", "bench: pubish"), "pubish"),
    *(
        Fault("input", f"{name} {words}", edited(of, change), "before", ("nobody",))
        for name, of in (("rack file", _rack), ("thresholds", _publish))
        for words, change in (
            ("with Windows' line ends", lambda text: text.replace("\n", "\r\n")),
            ("with a byte order mark", lambda text: f"\ufeff{text}"),
        )
    ),
    Fault(
        "input",
        "image cut short",
        of_image(lambda folder: os.truncate(_app(folder), 50_000)),
        "before",
        ("configuration",),
        "bin",
    ),
    Fault(
        "input",
        "image with a bit flipped",
        of_image(lambda folder: _flip(_app(folder), 60_000)),
        "before",
        ("configuration", "rig", "firmware"),
        "",
    ),
    Fault(
        "input",
        "image empty",
        of_image(lambda folder: os.truncate(_app(folder), 0)),
        "before",
        ("configuration",),
        "bin",
    ),
    Fault(
        "input",
        "image missing",
        of_image(lambda folder: _app(folder).unlink()),
        "before",
        ("configuration",),
        "bin",
    ),
    Fault(
        "input",
        "image's description torn",
        of_image(lambda folder: (folder / "project_description.json").write_text('{"target": ')),
        "before",
        ("nobody", "configuration"),
        "",
    ),
    Fault(
        "input",
        "flasher arguments that lead away",
        of_image(
            lambda folder: (folder / "flasher_args.json").write_text(
                (folder / "flasher_args.json")
                .read_text()
                .replace('"0x10000": "', '"0x10000": "../../../../etc/')
            )
        ),
        "before",
        ("configuration",),
        "flasher_args|etc",
    ),
    _of_run("with a torn last line", _appended('{"type": "rec'), "nobody"),
    _of_run(
        "with garbage in it",
        _appended(b"\x00\xff garbage\n{}\n"),
        "configuration",
        "rig",
        "undecided",
        says="records.jsonl",
    ),
    _of_run(
        "of a later version",
        _appended('{"type": "record", "schema": 99}\n'),
        "configuration",
        says="records.jsonl",
    ),
    _of_run("with hostile words", _hostile_record, "rig"),
    _of_run(
        "without run.json", lambda folder: (folder / "run.json").unlink(), "configuration", says="run.json"
    ),
    _of_run(
        "with run.json torn",
        lambda folder: (folder / "run.json").write_text('{"a": '),
        "configuration",
        says="run.json",
    ),
    _of_run(
        "without a journal", lambda folder: (folder / "records.jsonl").unlink(), "configuration", "undecided"
    ),
    _of_port("talks noise", _noise),
    _of_port("says nothing", _mute),
    _of_port("closes at once", lambda _connection: None),
    _of_port("sends without end", _flood),
    _of_port("is a web server", _web),
    _options("for a suite of nothing", "--suite", "quik", says="quik"),
    _options("for a board of nothing", "--board", "b99", says="b99"),
    _options("that is unknown", "--bord", "b1", says="bord"),
    _options("for a firmware of nothing", "--firmware", "/nowhere", says="/nowhere"),
    _options("for a base of nothing", "--base", "/nowhere", says="/nowhere"),
    _options("that contradicts another", "--base", "/x", "--unchanged"),
)
