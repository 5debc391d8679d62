# SPDX-License-Identifier: Apache-2.0
"""`hil` as a person meets it: wrong inputs, and what it says. One sentence, the right exit code."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import click
import pytest
from click.shell_completion import BashComplete

from hil.base.errors import ExitCode
from hil.boards.lease import PHYSICAL_LOCK_DIR
from hil.boards.rack import load_rack
from hil.cli.app import COMMANDS, app, run_command
from hil.cli.options import DEFAULT_OUT, DEFAULT_RACK
from hil.cli.virtual import given
from tests.in_process import hil
from tests.lab import ROOT, Lab, free_ports, make_lab, of_type, path_without
from tests.make_records import leave_run, publish_record

NewLab = Callable[..., Lab]

_COMMAND = re.compile(r"^(?:\.venv/bin/)?hil .*$", re.MULTILINE)


def commands_of(page: Path) -> list[str]:
    """Return the `hil …` lines of a page's shell blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    text = "".join(blocks).replace("\\\n", " ").replace(" && ", "\n")
    return _COMMAND.findall(text)


PAGES_WITH_COMMANDS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if commands_of(page)]


_UNQUOTED = re.compile(
    r"(?:--(?:rack|bundle|history|out|firmware) |hil gate |capinfos |editcap |fuser -v |tshark -V -r )"
    r"\{[\w.\[\]]*(?:path|folder|file|base|out|origin|parent)\}"
)


def test_paths_in_printed_commands_are_quoted() -> None:
    """A folder with a blank in its name is one word of the command that a sentence prints."""
    sources = [path for room in ("hil", "reports", "fixtures") for path in (ROOT / room).rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {one[0]}"
        for path in sources
        for one in _UNQUOTED.finditer(path.read_text(encoding="utf-8"))
    ]
    assert _UNQUOTED.search("hil gate {run.path}"), "control"
    assert not found


@pytest.fixture
def files(tmp_path: Path) -> Lab:
    """A lab that is never started."""
    return make_lab(tmp_path, 2)


def here(lab: Lab, *arguments: str) -> CompletedProcess[str]:
    """Run `hil` with the lab's environment in this process."""
    return hil(*arguments, env=lab.env)


def assert_refused(
    lab: Lab, code: int, *words: str, arguments: tuple[str, ...] = (), begins: bool = True
) -> str:
    """`hil run` ends with ``code`` and says ``words``; without a session (``begins``) in this process."""
    options = lab.arguments("--no-report", *arguments)
    done = lab.run(*arguments) if begins else here(lab, "run", *options)
    assert done.returncode == code, done.stdout
    for word in words:
        assert word in done.stdout
    assert "Traceback" not in done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("rack.yaml", "profile: lab", "profil: lab", ["rack.yaml:4: unknown key 'profil'", "'profile'"]),
        ("thresholds/publish.yaml", "policy:", "polizy:", ["publish.yaml:", "'polizy'", "'policy'"]),
        ("rack.yaml", "profile: lab", "profile: lap", ["'lap'", "'lab'"]),
    ],
)
def test_a_wrong_word_in_a_file(files: Lab, file: str, old: str, new: str, words: list[str]) -> None:
    """Exit 2; the file, and the nearest key or the profiles there are, once; no run directory is made."""
    path = files.folder / file
    path.write_text(path.read_text().replace(old, new))
    said = assert_refused(files, 2, "hil: ", *words)
    assert said.count(words[0]) == 1
    assert not (files.out / "latest").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rack", "no-such.yaml"), ["no-such.yaml: there is no such file"]),
        (("--target", "esp32c6"), ["no board has the target 'esp32c6'; there is virtual-esp32."]),
        (("--label", "psram"), ["no board has the label 'psram'; there is virtual-esp32."]),
        (("--trigger", "weekly"), ["'weekly'", "'nightly'"]),
        (("--out", "README.md"), ["--out", "'README.md' is a file"]),
        (("--no-such-option",), ["No such option"]),
    ],
)
def test_wrong_options(files: Lab, arguments: tuple[str, ...], words: list[str]) -> None:
    """Exit 2, and what would have been right."""
    assert_refused(files, 2, *words, arguments=arguments, begins=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--pushgateway", "http://user:word@lab"), ["http://***@lab", "HIL_PUSHGATEWAY_PASSWORD"]),
        (("--firmware", "out/nowhere"), ["nowhere", "not a firmware build", "hil build"]),
    ],
)
def test_a_wrong_place(files: Lab, arguments: tuple[str, ...], words: list[str]) -> None:
    """Exit 2. A password in an address is not repeated, and the variable for it named; of a build that is not
    there the folder, and the command that builds."""
    assert_refused(files, 2, *words, arguments=arguments)


@pytest.mark.slow
def test_a_build_whose_image_is_damaged(files: Lab, virtual_firmware: Path) -> None:
    """Exit 2: an image whose digest does not match its content is not measured."""
    build = files.folder / "build"
    build.mkdir()
    (build / "flasher_args.json").write_text((virtual_firmware / "flasher_args.json").read_text())
    image = bytearray((virtual_firmware / "hil-firmware.bin").read_bytes())
    image[1000] ^= 1
    (build / "hil-firmware.bin").write_bytes(image)
    assert_refused(files, 2, "is damaged", "hil build", arguments=("--firmware", str(build)))


@pytest.mark.slow
def test_a_port_that_is_taken(new_lab: NewLab) -> None:
    """Exit 3; which port, for which board, and how to find who has it; the journal says so too."""
    lab = new_lab(1, ports=free_ports(1))
    with socket.create_server(("127.0.0.1", lab.ports[0])):
        assert_refused(lab, 3, f"port {lab.ports[0]}", "b1", "in use", "ss -ltnp")
    entries = lab.entries()
    assert [entry["exit_code"] for entry in of_type(entries, "fault")] == [3]
    assert len(of_type(entries, "not-run")) == 1
    lab.await_nothing_left()


@pytest.mark.slow
def test_a_broker_that_does_not_start(new_lab: NewLab) -> None:
    """Exit 3; the broker's own words; the rack that was started before it is gone."""
    lab = new_lab(1)
    fake = lab.folder / "bin" / "mosquitto"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'Error: no luck today' >&2\nexit 1\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    lab.env["PATH"] = f"{fake.parent}:{lab.env['PATH']}"
    assert_refused(lab, 3, "broker did not start", "no luck today")
    lab.await_nothing_left()


@pytest.mark.slow
def test_a_disk_that_refuses_is_the_rigs(new_lab: NewLab) -> None:
    """Exit 3 where the network's files cannot be written, in the journal too; nothing is left."""
    lab = new_lab(1)
    (lab.out / "virtual" / "lab").write_text("a file where a folder has to be")
    assert_refused(lab, 3, "starting the network of rack lab failed", "virtual/lab")
    assert [entry["exit_code"] for entry in of_type(lab.entries(), "fault")] == [3]
    lab.await_nothing_left()


@pytest.mark.slow
def test_a_missing_password_is_said_before_anything_is_done(files: Lab) -> None:
    """Exit 2 naming the variable, before boards are leased, firmware is built or a run directory made."""
    text = (ROOT / "hil" / "racks" / "lab-example.yaml").read_text()
    files.rack.write_text(text.replace("HIL_WIFI_PSK", "HIL_NO_SUCH_PSK").replace("lab-example", "psk-test"))
    assert_refused(files, 2, "environment variable HIL_NO_SUCH_PSK", "export HIL_NO_SUCH_PSK=")
    assert not (files.out / "latest").exists()
    assert not (PHYSICAL_LOCK_DIR / "psk-test").exists()


NO_PORT = [
    "board b1 of rack lab has no port, because `hil virtual up` is not running",
    "Next: hil virtual up, in another terminal.",  # no port is guessed
]


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("build --target esp32s3", 2, ["idf.py is not on PATH", "--target virtual-esp32"]),  # two ways out
        ("build --target esp8266", 2, ["'esp8266'", "esp32s3"]),  # the targets there are
        ("gate {out}/x", 2, ["not a run directory"]),
        ("board power b1 cycle --rack {rack} --out {out}", 3, ["hil virtual up"]),
        ("board flash b1 --rack {rack} --out {out}", 3, NO_PORT),
        ("board console b1 --rack {rack} --out {out}", 3, NO_PORT),
    ],
)
def test_what_a_command_needs_is_said(files: Lab, command: str, code: int, words: list[str]) -> None:
    """The owner's exit code, what is missing, and the way out."""
    files.env["PATH"] = path_without("idf.py")
    done = here(files, *command.format(rack=files.rack, out=files.out).split())
    assert done.returncode == code
    assert [word for word in words if word not in done.stdout] == [], done.stdout


@pytest.mark.parametrize(
    ("words", "begun", "found"),
    [
        ("board flash --rack {rack}", "b", ["b1", "b2"]),
        ("run --rack {rack} --board", "", ["b1", "b2"]),
        ("run --rack {out}/none.yaml --board", "", []),
        ("run --thresholds {thresholds} --suite", "n", ["nightly"]),
        ("compare --suite", "qui", ["quick"]),
    ],
)
def test_a_shell_completes_boards_and_suites(files: Lab, words: str, begun: str, found: list[str]) -> None:
    """Those of the rack file and the folder of limits that the line names; of a wrong file none."""
    places = {"rack": files.rack, "out": files.out, "thresholds": files.folder / "thresholds"}
    complete = BashComplete(app, {}, "hil", "_HIL_COMPLETE").get_completions
    assert [one.value for one in complete(words.format(**places).split(), begun)] == found


def test_a_console_without_a_terminal_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 2 and the way out, in the place of a serial monitor's traceback."""
    lab = make_lab(tmp_path, 1, ports=free_ports(1))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = here(lab, "board", "console", "b1", "--rack", str(lab.rack), "--out", str(lab.out))
    assert done.returncode == 2
    assert re.search(r"board b1 .*terminal", done.stdout)


def test_plan_says_when_a_comparison_is_judged(files: Lab) -> None:
    """Looks and minutes, of the suite that a pull request is compared by, and what no comparison judges; none
    where nothing is compared."""
    rack = ("plan", "--rack", str(files.rack))
    shipped, own = (str(folder / "thresholds") for folder in (ROOT, files.folder))
    said = here(files, *rack, "--suite", "pr", "--thresholds", shipped).stdout
    (line,) = re.findall("^.* beside a base: .*$", said, re.M)
    (alone,) = re.findall("^.*: limits alone block by (.*);", said, re.M)
    assert "switch_failed_ratio" in alone.split(", ")
    assert "publish_latency_tail5_us" not in alone
    assert "after 3 + 3, 5 + 5, 8 + 8 and" in line
    assert "of 15 min" in line
    assert "beside a base" not in here(files, *rack, "--thresholds", own).stdout


def test_plan_tells_images_and_each_reason_once(files: Lab) -> None:
    """Cases that need another image stand below its name; those left out for one reason are one line."""
    path = files.folder / "thresholds" / "publish.yaml"
    text = path.read_text().replace(
        "parameters:\n",
        "parameters:\n  tick_hz: {default: '1000', choices: ['1000', '100']}\n"
        "  memory: {default: internal, choices: [internal, psram]}\n",
    )
    path.write_text(
        text.replace("{count: 60,", "{tick_hz: ['1000', '100'], memory: [internal, psram], count: 60,")
    )
    arguments = ("plan", "--rack", str(files.rack), "--thresholds", str(path.parent), "--board", "b1")
    lines = here(files, *arguments).stdout.splitlines()
    assert lines[0] == "b1 (virtual-esp32): 2 boots, 2 cases"
    assert [line for line in lines if "image" in line] == ["  image virtual-esp32+tick100:"]
    assert "tick_hz=100" in lines[3]
    (not_run,) = lines[4:]
    assert re.fullmatch(r"  .*memory=psram .* \(2 cases\)", not_run)


def test_help_lists_every_command() -> None:
    """`hil --help` has a line for each."""
    said = hil("--help").stdout
    assert [name for name in COMMANDS if f"\n  {name} " not in said] == []


def test_rack_status(files: Lab) -> None:
    """It lists every board and whether it is free."""
    arguments = ("--rack", str(files.rack), "--out", str(files.out))
    head, _columns, *boards = here(files, "rack", "status", *arguments).stdout.splitlines()
    assert re.match("rack lab .*: 2 boards, 2 free", head)
    assert [line.split() for line in boards] == [[board, "esp32", "ok", "free"] for board in ("b1", "b2")]


def test_rack_check_of_a_lab_that_is_not_here(files: Lab) -> None:
    """Exit 3; each missing thing by itself with what to do about it, the first in the sentence."""
    files.env.pop("HIL_WIFI_PSK", None)
    example = (ROOT / "hil" / "racks" / "lab-example.yaml").read_text(encoding="utf-8")
    path = files.folder / "lab-example.yaml"
    path.write_text(f"{example}\ncapture: {{access_point: nosuch0}}\n", encoding="utf-8")
    done = here(files, "rack", "check", "--rack", str(path), "--out", str(files.out))
    assert done.returncode == 3
    said = " ".join(done.stdout.split())
    assert "FAIL capture at nosuch0: " in said
    assert "FAIL esp32-1: port /dev/" in said
    found = [line for line in done.stdout.splitlines() if not line.startswith("hil: ")]
    findings = re.split(r"^(?=ok  |FAIL|note)", "\n".join(found), flags=re.MULTILINE)
    failed = [finding for finding in findings if finding.startswith("FAIL")]
    assert len(failed) > 2
    assert not [finding for finding in failed if "\n     Next: " not in finding]
    assert not [line for line in found if len(line) > 80 and len(line.split()) > 1]
    assert "HIL_WIFI_PSK" in done.stdout


def test_a_mistyped_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """A word that is no command is answered with the command that it looks like."""
    assert run_command(["rnu"]) == ExitCode.CONFIG
    assert "'run'" in capsys.readouterr().err


def test_rack_check_finds_a_port_that_somebody_else_serves(tmp_path: Path) -> None:
    """Exit 3: a listener on a virtual board's port is no board of this rack, which is not up."""
    files = make_lab(tmp_path, 2, ports=free_ports(2))
    arguments = ("--rack", str(files.rack), "--out", str(files.out))
    with socket.create_server(("127.0.0.1", files.ports[1])):
        done = here(files, "rack", "check", *arguments)
    assert done.returncode == 3
    assert f"ok   b1: port {files.ports[0]} is free for it" in done.stdout
    assert f"FAIL b2: port {files.ports[1]} " in done.stdout
    assert f"ss -ltnp 'sport = :{files.ports[1]}'" in done.stdout


@pytest.mark.slow
def test_a_rack_that_is_up_passes_its_check_and_names_itself_in_its_hints(new_lab: NewLab) -> None:
    """Its ports are its own, and what it tells people to type means this rack, not the default one."""
    lab = new_lab(1, ports=free_ports(1))
    arguments = ("--rack", str(lab.rack), "--out", str(lab.out))
    up = lab.keep_up()
    try:
        up.await_line(r"serial\.tools\.miniterm")
        options = shlex.join(arguments)
        assert f"hil board flash b1 {options}\n" in up.said()
        assert f"hil board console b1 {options}\n" in up.said()
        done = lab.hil("rack", "check", *arguments)
        assert done.returncode == 0, done.stdout
        assert f"ok   b1: port {lab.ports[0]} is served" in done.stdout
        up.send(signal.SIGINT)
        assert up.wait() == 130
    finally:
        up.close()
    lab.await_nothing_left()


def test_the_hints_of_the_default_rack_are_short() -> None:
    """Options that say what is the default anyway are left out, however the path is written."""
    assert given(DEFAULT_RACK, DEFAULT_OUT) == ""
    assert given(Path(os.path.relpath(DEFAULT_RACK)), DEFAULT_OUT) == ""
    assert given(Path("my rack.yaml"), DEFAULT_OUT) == " --rack 'my rack.yaml'"


def test_gate_writes_a_summary_that_goes_with_the_verdict(files: Lab) -> None:
    """Judged again under other limits, summary.md and verdicts.json both say so; limits whose day is over
    count as any others."""
    directory = leave_run(files.folder / "runs", [publish_record()], started_utc="2026-07-01T00:00:00Z")
    arguments = ("gate", str(directory.path), "--thresholds", str(files.folder / "thresholds"))
    path = files.folder / "thresholds" / "publish.yaml"
    path.write_text(re.sub(r"expires: [0-9-]+", "expires: 2026-06-30", path.read_text()))
    assert here(files, *arguments).returncode == 0
    assert directory.summary_path.read_text().startswith("# PASS")
    path.write_text(re.sub(r"abs_max_ms: \d+", "abs_max_ms: 1", path.read_text()))
    assert here(files, *arguments).returncode == 1
    assert json.loads(directory.verdicts_path.read_text())["exit_code"] == 1
    assert directory.summary_path.read_text().startswith("# REGRESSED")


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=lambda page: page.name)
def test_the_commands_in_the_docs_are_commands(page: Path) -> None:
    """Every `hil …` line in a shell block names a command, options and boards that there are."""
    commands = [shlex.split(line, comments=True) for line in commands_of(page)]
    for words in commands:
        parse(app, [word for word in words[1:] if word != "&"])
        if "--board" in words and "my-rack.yaml" not in words:
            load_rack(DEFAULT_RACK).board(words[words.index("--board") + 1])


def parse(command: click.Command, words: list[str]) -> None:
    """Parse a command line down to its last command, running nothing. Raises UsageError."""
    while isinstance(command, click.Group):
        if command.invoke_without_command and words and words[0].startswith("-"):
            break
        found = command.get_command(click.Context(command), words[0])
        assert found, f"no command {words[0]}"
        command, words = found, words[1:]
    command.make_context(command.name, list(words))
