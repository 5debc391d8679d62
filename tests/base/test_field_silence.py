# SPDX-License-Identifier: Apache-2.0
"""Nothing that a user writes is left unread in silence: each reader names what it does not know."""

from __future__ import annotations

import ast
import datetime
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest import mock

import pytest

from hil.base import unread
from hil.base.errors import HilError
from hil.base.paths import TOOL_RACKS, TOOL_THRESHOLDS
from hil.base.project import read_project
from hil.base.secret import secret
from hil.boards.firmware.build_folder import flash_files
from hil.boards.firmware.partition_table import read_csv
from hil.boards.firmware.product.kconfig import read_options
from hil.boards.firmware.product.project import find_project
from hil.boards.flash.tool import write_of
from hil.boards.places.settings import read_places
from hil.boards.rack import load_rack
from hil.ci.event import TARGETS_FILE, read_targets
from hil.cli.app import run_command
from hil.history.importing import import_csv
from hil.history.nightly.reference import REFERENCE, load_references
from hil.network.dissect.segments import MqttPorts, read_segments
from hil.probe.probe_file import read_probe
from hil.reports.studies.loader import PUBLISHED, load_study, study_files
from hil.run.plan.selection import select_cases
from hil.suite.facts import BoardFact
from hil.suite.figures import SuiteMetric
from hil.suite.limits import limits_of
from hil.suite.naming import named
from hil.thresholds import load, load_all
from hil.virtual import noise
from hil.virtual.air import profile
from tests.boards.revision_rig import commit_all, git
from tests.history.segment_files import SegmentFile, connect, mqtt, text
from tests.lab import ROOT

Read = Callable[[Path], object]

# What parses a file that somebody may have written by hand.
PARSERS = {
    "hil.base.yamlfile.load",
    "hil.base.yamlfile.loads",
    "hil.network.dissect.tshark.read_fields",
    "tomllib.loads",
    "csv.reader",
    "Kconfgen",  # a process: Espressif's reader of Kconfig
    "csv.DictReader",
    "json.load",
    "json.loads",
    "ruamel.yaml.YAML",
}


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def added(source: Path, line: str, folder: Path) -> Path:
    """Return a copy of a sound file with one line more at its end."""
    return write(folder / source.name, f"{source.read_text(encoding='utf-8')}\n{line}\n")


def toml(first: str, last: str = "", chip: str = "esp32") -> Read:
    """Return what reads a hil.toml with these lines before and after its table of the firmware."""

    def read(folder: Path) -> object:
        write(folder / "CMakeLists.txt", "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(it)\n")
        firmware = f'[firmware]\nfolder = "."\ntargets = ["{chip}"]'
        write(folder / "hil.toml", f"schema = 1\n{first}\n{firmware}\n{last}\n")
        return read_project(folder)

    return read


def rack(folder: Path) -> object:
    return load_rack(added(TOOL_RACKS / "virtual.yaml", "acces_point: {}", folder))


def probe(folder: Path) -> object:
    content = "schema: 1\nready: {pattern: up}\nboot: {to: a}\non_restrat: count\n"
    return read_probe(write(folder / "a.probe.yaml", content))


def limits(folder: Path) -> object:
    added(TOOL_THRESHOLDS / "echo.yaml", "limts: []", folder)
    return load("echo", folder)


def suite_limits(folder: Path) -> object:
    write(folder / "wifi.yaml", "schema: 1\nbench: wifi\nlimts: []\n")
    board = BoardFact(board="b", kind="physical", target="esp32")
    naming = named("connect_ms", "", "test_wifi.py")
    return limits_of([SuiteMetric(board, "test_wifi.py::test_it", naming, (1,), "lower", None, "")], folder)


def references(folder: Path) -> object:
    write(folder / REFERENCE, "schema: 1\nreferences: []\nreferencez: []\n")
    return load_references(folder)


def partitions(folder: Path) -> object:
    return read_csv(write(folder / "p.csv", "app,app,factory,0x10000,1M,,extra\n"))


def options(folder: Path) -> object:
    write(folder / "main" / "CMakeLists.txt", "idf_component_register()\n")
    write(folder / "CMakeLists.txt", "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(it)\n")
    write(folder / "sdkconfig.defaults", "CONFIG_A=y\nCONFG_B=y\n")
    return read_options(find_project(folder), chip="esp32", say=lambda _: None)


def targets(folder: Path) -> object:
    git(folder, "init", "-q")
    write(folder / TARGETS_FILE, '{"build": ["esp32"], "racks": [], "rakcs": ["esp32"]}')
    return read_targets(folder, commit_all(folder))


def flasher_args(folder: Path) -> object:
    write(folder / "flasher_args.json", '{"flash_fils": {"0x1000": "bootloader.bin"}}')
    return flash_files(folder)


def study(folder: Path) -> object:
    name, path = next(iter(study_files(PUBLISHED).items()))
    shutil.copytree(path.parent, folder / "studies" / path.parent.name)
    added(path, "claimz: []", folder / "studies" / path.parent.name)
    return load_study(name, folder / "studies")


def imported(folder: Path) -> object:
    path = write(folder / "old.csv", "time,commit,value,nota_bene\n2026-01-01,abcdef0,1,x\n")
    return import_csv(path, "e1/publish/latency_ms", folder, now=datetime.datetime.now(datetime.UTC))


def capture(folder: Path) -> object:
    """A PUBLISH with a property that MQTT 5 does not have, then one with an alias that nobody gave."""
    file = SegmentFile()
    file.open()
    file.client(connect(level=5))
    file.client(mqtt(0x30, text("t") + b"\x02\x7e\x01x"))
    file.client(mqtt(0x30, text("") + b"\x03\x23\0\x09x"))
    segments = read_segments(file.write(folder / "x.pcap"), MqttPorts(plain=(1883,)))
    return [one.unreadable for one in segments if one.unreadable]


def noises(folder: Path) -> object:
    with mock.patch.object(noise, "PROFILES", added(noise.PROFILES, "profils: {}", folder)):
        return noise.load_noise_profiles()


def leased(folder: Path) -> object:
    return read_places(
        write(folder / "rack.yaml", "places: {coordinator: 'lab:1', match: {target: esp32}, cuont: 2}\n")
    )


# By the module that reads: what it is given, and the word that it has to name.
WRITTEN_BY_USERS: dict[str, list[tuple[str, Read]]] = {
    "hil/boards/rack/loader.py": [("acces_point", rack)],
    "hil/boards/places/settings.py": [("cuont", leased)],
    "hil/base/project.py": [
        ("strickt", toml("strickt = true")),
        ("firmware.tragets", toml("", 'tragets = ["esp32"]')),
        ("keep.captures_day", toml("", "[keep]\ncaptures_day = 3")),
        ("given.nsv", toml("", "[given]\nnsv = {}")),
        ("flash.comand", toml("", '[flash]\ncomand = "x"')),
        ("product.nmae", toml("", '[product]\nnmae = "x"')),
        ("esp32x", toml("", chip="esp32x")),
    ],
    "hil/probe/probe_file.py": [("on_restrat", probe)],
    "hil/thresholds/loader.py": [
        ("limts", limits),
        ("nigthly", lambda _: select_cases(load_all(TOOL_THRESHOLDS), "nigthly")),
    ],
    "reports/studies/loader.py": [("claimz", study)],
    "hil/virtual/air/profile.py": [
        ("profils", lambda folder: profile.load_profiles(added(profile.PROFILES, "profils: {}", folder)))
    ],
    "hil/virtual/noise.py": [("profils", noises)],
    "hil/history/nightly/reference.py": [("referencez", references)],
    "hil/ci/event.py": [("rakcs", targets)],
    "hil/boards/firmware/build_folder.py": [("flash_files", flasher_args)],
    "hil/boards/firmware/product/kconfig.py": [("sdkconfig.defaults:2: 'CONFG_B=y' is no option", options)],
    "hil/boards/firmware/partition_table.py": [("has 7 fields", partitions)],
    "hil/history/importing.py": [("nota_bene", imported)],
    "hil/suite/limits.py": [("limts", suite_limits)],
    "hil/network/dissect/segments.py": [("0x7e", capture), ("topic alias 9", capture)],
}

# What no user writes: hil wrote it, or a program or a service answers it.
OTHERS = {
    "a parser for the readers": ("hil/base/yamlnodes.py", "hil/base/yamlvalue.py"),
    "the rack file, after its own reader": (
        "hil/boards/places/exporter.py",
        "hil/boards/places/lease.py",
        "hil/cli/status.py",
    ),
    "a file of limits, before or after its own reader": (
        "hil/cli/completion.py",
        "hil/thresholds/writing.py",
    ),
    "a component's manifest, which ESP-IDF's manager checks": ("hil/boards/firmware/product/project.py",),
    "a compiler's, ESP-IDF's or a packet's own output": (
        "fixtures/src/pytest_hil/duts.py",
        "hil/base/idf_project.py",
        "hil/boards/firmware/size.py",
        "hil/network/dissect/transport.py",
        "hil/network/ledger/sightings.py",
        "hil/probe/measuring.py",
    ),
    "a service's answer": ("hil/boards/http_plug.py", "hil/virtual/emulator/qmp.py"),
    "of a job before, which hil wrote": (
        "hil/boards/firmware/bundle.py",
        "hil/boards/firmware/failure.py",
        "hil/cli/ci_verdict.py",
        "hil/history/branch.py",
        "hil/cli/init.py",
        "hil/store/ended.py",
    ),
    "the record, the history or the state of this rack": (
        "hil/boards/quarantine.py",
        "hil/boards/lease.py",
        "hil/boards/places/keeper.py",
        "hil/history/measuring.py",
        "hil/trace/files.py",
        "hil/virtual/rack_state.py",
        "reports/allure/completion.py",
        "reports/comment/facts.py",
        "reports/site/past.py",
        "reports/site/points.py",
        "reports/studies/build.py",
    ),
    "one process of hil's to another": (
        "hil/network/flood.py",
        "hil/network/helper.py",
        "hil/network/peers/gateway/connection.py",
        "hil/network/peers/gateway/echo_check.py",
        "hil/network/peers/gateway/lines.py",
        "hil/network/peers/gateway/plan.py",
        "hil/network/peers/mqtt/subscriber.py",
        "hil/network/root_helper.py",
        "hil/virtual/board/client.py",
        "hil/virtual/board/control.py",
        "hil/virtual/rack_namespace.py",
        "hil/virtual/unix_socket.py",
    ),
}


LAST_NAMES = {name.rpartition(".")[2] for name in PARSERS}
# a parser that is called by another name is imported by its own
_ANY_NAME = re.compile(rf"\b(?:{'|'.join(sorted(LAST_NAMES))})\b")


def is_reader(path: Path) -> bool:
    """Return whether a module calls a parser, as far as its imports say."""
    text = path.read_text(encoding="utf-8")
    if not _ANY_NAME.search(text):
        return False
    nodes = list(ast.walk(ast.parse(text)))
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    return any(full_name(call, names) in PARSERS for call in calls if last_name(call, names) in LAST_NAMES)


def last_name(call: ast.expr, names: Mapping[str, str]) -> str:
    if isinstance(call, ast.Attribute):
        return call.attr
    return names.get(call.id, call.id).rpartition(".")[2] if isinstance(call, ast.Name) else ""


def full_name(call: ast.expr, names: Mapping[str, str]) -> str:
    head, dot, rest = ast.unparse(call).partition(".")
    return f"{names.get(head, head)}{dot}{rest}"


def sources() -> Iterator[Path]:
    for folder in ("hil", "reports", "fixtures"):
        yield from (path for path in sorted((ROOT / folder).rglob("*.py")) if "data" not in path.parts)


def test_each_reader_is_known() -> None:
    """A module that parses a file has its unknown input here, or the reason why nobody writes that file."""
    readers = {path.relative_to(ROOT).as_posix() for path in sources() if is_reader(path)}
    listed = [*WRITTEN_BY_USERS, *(name for names in OTHERS.values() for name in names)]
    assert sorted(listed) == sorted(readers)


@pytest.mark.parametrize(
    ("word", "read"),
    [
        pytest.param(*case, id=f"{name}-{case[0]}")
        for name, cases in WRITTEN_BY_USERS.items()
        for case in cases
    ],
)
def test_what_a_reader_does_not_know_is_named(word: str, read: Read, tmp_path: Path) -> None:
    """A misspelt key, another column, a packet that is none: an error or a note has the word."""
    try:
        said = str(read(tmp_path))
    except HilError as error:
        said = str(error)
    assert word in said


def test_each_line_of_the_secrets_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that sets nothing is told by its number, and not quoted: it may hold a password."""
    path = write(tmp_path / "secrets", "# of this rack\n\nHIL_WIFI_PSK='a b'\nexport HIL_OTHER_PSK=hidden\n")
    monkeypatch.setenv("HIL_SECRETS", str(path))
    monkeypatch.delenv("HIL_WIFI_PSK", raising=False)
    with pytest.raises(HilError, match=r"secrets:4: the line is not NAME=VALUE") as caught:
        secret("HIL_WIFI_PSK")
    assert "hidden" not in str(caught.value)


def test_a_variable_that_nothing_reads_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command says it first, with the nearest that is read; a password of a rack file's is no such."""
    for name in ("HIL_PUSHGATEWY", "HIL_INPUT_TARGET", "HIL_BOOTS", "HIL_LAB_PSK", "HIL_TRIGGER"):
        monkeypatch.setenv(name, "nightly")
    run_command(["plan", "--suite", "nigthly"])
    said = capsys.readouterr().err
    nearest = {"HIL_PUSHGATEWY": "HIL_PUSHGATEWAY", "HIL_INPUT_TARGET": "HIL_INPUT_TARGETS"}
    for name, meant in nearest.items():
        assert re.search(rf"\b{name}; did you mean '{meant}'", said)
    assert "HIL_BOOTS" in said
    assert "HIL_LAB_PSK" not in said
    assert "HIL_TRIGGER;" not in said


_VARIABLE = re.compile(r"HIL_[A-Z0-9_]*[A-Z0-9]")


def test_the_variables_are_those_that_are_read() -> None:
    """The list is what the code, the workflows and the actions name, and nothing else."""
    named: set[str] = set()
    for path in sources():
        text = path.read_text("utf-8")
        if path.name != "unread.py" and "HIL_" in text:
            words = (getattr(node, "value", "") for node in ast.walk(ast.parse(text)))
            named |= {word for word in words if isinstance(word, str) and _VARIABLE.fullmatch(word)}
    for folder in (".github", ".ci"):
        for path in (path for path in (ROOT / folder).rglob("*") if path.is_file()):
            named |= set(
                re.findall(r"(?:\$\{?|vars\.|env\.|^ +)(HIL_[A-Z0-9_]+)", path.read_text("utf-8"), re.M)
            )
    inputs = {name for name in unread.VARIABLES if name.startswith("HIL_INPUT_")}
    assert sorted(named - inputs) == sorted(set(unread.VARIABLES) - inputs)
    declared = re.findall(r"HIL_INPUT_\w+", (ROOT / ".github/workflows/measure.yml").read_text("utf-8"))
    assert inputs == set(declared)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder hil/, of a sound bench, a sound probe and notes."""
    monkeypatch.setattr(unread, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(unread, "PROJECT_THRESHOLDS", tmp_path / "hil" / "thresholds")
    monkeypatch.setattr(unread, "own_benches", lambda: tmp_path / "hil" / "benches")
    for name in ("wake_up.c", "test_wake_up.py", "rssi.probe.yaml", "helpers.py", "conftest.py", "README.md"):
        write(tmp_path / "hil" / "benches" / name, "")
    for name in ("wake_up.yaml", "rssi.yaml", "echo.yaml", ".hidden.yml", "nightly/reference.yaml"):
        write(tmp_path / "hil" / "thresholds" / name, "")
    write(tmp_path / "hil" / "rack.yaml", "")
    return tmp_path / "hil"


def test_a_sound_project_has_nothing_unread(own: Path) -> None:
    """What belongs there is not named, nor are the limits of a pytest suite's file."""
    write(own / "thresholds" / "wifi.yaml", "schema: 1\nbench: wifi\nlimits: []\n")
    write(own.parent / "app" / "tests" / "test_wifi.py", "")
    assert not list(unread.unread({}))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rack.yml", "hil/rack.yml; call it rack.yaml."),
        ("thresholds/wake.yml", "hil/thresholds/wake.yml; call it wake.yaml."),
        ("thresholds/nightly/refrence.yaml", "refrence.yaml; call it reference.yaml."),
        ("thresholds/wakeup.yaml", "as no bench is called 'wakeup'; did you mean 'wake_up'?"),
        ("benches/rss.probe.yaml", "as there is no thresholds/rss.yaml; did you mean 'rssi'?"),
        ("benches/rss.probe.yml", "hil/benches/rss.probe.yml: of benches .c"),
        ("benches/load.cpp", "hil/benches/load.cpp: of benches .c"),
        ("benches/lonely.c", "as there is no thresholds/lonely.yaml"),
    ],
)
def test_a_file_that_nothing_reads_is_named(own: Path, name: str, words: str) -> None:
    """A file of another ending or without its other half is said, with its right name."""
    write(own / name, "")
    (said,) = unread.unread({})
    assert words in said


def test_a_build_without_the_stub_is_flashed_without_it(tmp_path: Path) -> None:
    """flasher_args.json says so where CONFIG_ESPTOOLPY_NO_STUB is set: esptool gets the option."""
    write(tmp_path / "flasher_args.json", json.dumps({"extra_esptool_args": {"stub": False}}))
    assert not write_of(tmp_path, []).stub
