# SPDX-License-Identifier: Apache-2.0
"""Runs that share a rack: who gets which boards, in which order, between real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from hil.base.errors import ConfigError, RigError
from hil.boards.lease import HANDED_OVER, lease_boards, lock_dir, read_holder
from hil.boards.rack import load_rack
from hil.boards.rack_queue import Ticket, take_boards
from hil.cli.run import command
from tests.lab import ROOT, wait_for

VIRTUAL = ROOT / "hil" / "racks" / "virtual.yaml"
# takes boards, writes its name behind the others, says which ones, and gives them back when its stdin closes
TAKE = """
import sys
from pathlib import Path
from hil.boards.rack_queue import take_boards
folder, name, boards, count, expected_s, wait_s = sys.argv[1:]
def waits(_sentence):
    print("waits", flush=True)
taken = take_boards(
    Path(folder), boards.split(), int(count),
    expected_s=lambda: float(expected_s), wait_s=float(wait_s), on_wait=waits,
)
with (Path(folder) / "served").open("a") as log:
    log.write(name + "\\n")
print(*sorted(taken), flush=True)
sys.stdin.read()
"""
# goes on as another program, as `hil run` does; that one leases what it was handed over
GO_ON = """
import os, sys
from pathlib import Path
from hil.boards.lease import hand_over_boards
from hil.boards.rack_queue import take_boards
taken = take_boards(Path(sys.argv[1]), ["a", "b"], 1, expected_s=lambda: 0.0)
os.environ.update(hand_over_boards(taken))
os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], sys.argv[1], *taken])
"""
LEASE = """
import os, sys
from pathlib import Path
from hil.boards.lease import lease_boards
with lease_boards(Path(sys.argv[1]), sys.argv[2:], run_id="the-run"):
    assert "HIL_LOCKED_BOARDS" not in os.environ
    print("held", *sys.argv[2:], flush=True)
    sys.stdin.readline()
print("given back", flush=True)
sys.stdin.readline()
"""


@dataclass
class Run:
    """A process that takes boards."""

    process: subprocess.Popen[str]

    def says(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def ends(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(timeout=20)


@contextmanager
def started(*arguments: str) -> Iterator[Run]:
    process = subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    with process:
        try:
            yield Run(process)
        finally:
            process.kill()


def a_run(folder: Path, name: str, boards: str, count: int, *, expected_s: float = 0.0, wait_s: float = 60.0):  # type: ignore[no-untyped-def]
    return started("-c", TAKE, str(folder), name, boards, str(count), str(expected_s), str(wait_s))


@pytest.mark.slow
def test_two_runs_share_the_boards_of_a_rack(tmp_path: Path) -> None:
    """Two of four each: both have them at once, each its own; a third waits, and takes what comes free."""
    with ExitStack() as stack:
        one = stack.enter_context(a_run(tmp_path, "one", "a b c d", 2))
        of_one = one.says()
        two = stack.enter_context(a_run(tmp_path, "two", "a b c d", 2))
        of_two = two.says()
        assert sorted(f"{of_one} {of_two}".split()) == ["a", "b", "c", "d"]
        three = stack.enter_context(a_run(tmp_path, "three", "a b c d", 2))
        assert three.says() == "waits"
        two.ends()
        assert three.says() == of_two


@pytest.mark.slow
def test_all_that_come_at_once_are_served(tmp_path: Path) -> None:
    """Six runs that want two boards of three, each the others' obstacle: every one of them gets its turn."""
    with ExitStack() as stack:
        names = [f"run-{number}" for number in range(6)]
        for run in [stack.enter_context(a_run(tmp_path, name, "a b c", 2)) for name in names]:
            assert run.process.stdin
            run.process.stdin.close()  # it gives them back at once
        wait_for(lambda: served(tmp_path) == names, lambda: str(served(tmp_path)), 60.0)


def served(folder: Path) -> list[str]:
    return sorted((folder / "served").read_text().split()) if (folder / "served").exists() else []


@pytest.mark.slow
def test_the_shortest_of_those_that_wait_is_next(tmp_path: Path) -> None:
    """Whoever came first: a run of ten seconds goes before one of an hour that has not waited as long."""
    with ExitStack() as stack:
        holder = stack.enter_context(a_run(tmp_path, "holder", "a", 1))
        assert holder.says() == "a"
        long = stack.enter_context(a_run(tmp_path, "long", "a", 1, expected_s=3600.0))
        assert long.says() == "waits"
        short = stack.enter_context(a_run(tmp_path, "short", "a", 1, expected_s=10.0))
        assert short.says() == "waits"
        holder.ends()
        assert short.says() == "a"
        assert (tmp_path / "served").read_text().split() == ["holder", "short"]
        short.ends()
        assert long.says() == "a"
        long.ends()
    assert list(tmp_path.glob("*.ticket")) == list(tmp_path.glob("*.new")) == []


def test_waiting_counts_as_being_shorter() -> None:
    """One of 600 s that came 590 s before one of 20 s goes first; others' boards are no matter."""
    long, short = Ticket(("a", "b"), 1000.0 + 600.0, "1"), Ticket(("b",), 1590.0 + 20.0, "2")
    assert long.is_before(short)
    assert not short.is_before(long)
    assert not long.is_before(Ticket(("c",), 9999.0, "3"))


@pytest.mark.slow
def test_a_killed_run_keeps_no_place(tmp_path: Path) -> None:
    """The ticket of a process that is gone is thrown away, and the next in the queue gets the board."""
    with ExitStack() as stack:
        holder = stack.enter_context(a_run(tmp_path, "holder", "a", 1))
        assert holder.says() == "a"
        killed = stack.enter_context(a_run(tmp_path, "killed", "a", 1))
        assert killed.says() == "waits"
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait(timeout=20)
        assert len(list(tmp_path.glob("*.ticket"))) == 1
        patient = stack.enter_context(a_run(tmp_path, "patient", "a", 1, expected_s=1.0))
        assert patient.says() == "waits"
        assert len(list(tmp_path.glob("*.ticket"))) == 1
        holder.ends()
        assert patient.says() == "a"


def test_a_run_that_does_not_wait_names_who_holds_what(tmp_path: Path) -> None:
    """Exit 3, with boards, holders and the way out; what it had locked meanwhile is free again."""
    with lease_boards(tmp_path, ["a"], run_id="by-name"):
        with pytest.raises(RigError) as caught:
            take_boards(tmp_path, ["a", "b"], 2, expected_s=lambda: 0.0)
        assert "of 2 boards of rack" in str(caught.value)
        assert "1 are free, and 2 are asked for: a is held by" in str(caught.value)
        assert "by-name" in str(caught.value)
        assert "--wait" in str(caught.value)
        assert read_holder(tmp_path, "b") is None
        taken = take_boards(tmp_path, ["a", "b"], 1, expected_s=lambda: 0.0)
        assert list(taken) == ["b"]
        os.close(taken["b"])


def test_boards_take_turns(tmp_path: Path) -> None:
    """Of free boards those are taken that nobody has had for longest, the ones never had first."""
    for number, board in enumerate(("c", "a", "b")):
        (tmp_path / f"{board}.lock").touch()
        os.utime(tmp_path / f"{board}.lock", ns=(number + 1, number + 1))
    taken = take_boards(tmp_path, ["a", "b", "c", "d"], 3, expected_s=lambda: 0.0)
    assert sorted(taken) == ["a", "c", "d"]
    for file in taken.values():
        os.close(file)


@pytest.mark.slow
def test_the_boards_stay_locked_when_the_program_is_replaced(tmp_path: Path) -> None:
    """Between taking and leasing nobody has them; the lease is the run's, and its end gives them back."""
    with started("-c", GO_ON, str(tmp_path), LEASE) as run:
        word, board = run.says().split()
        assert word == "held"
        holder = read_holder(tmp_path, board)
        assert holder
        assert (holder.run_id, holder.pid) == ("the-run", run.process.pid)
        assert run.process.stdin
        run.process.stdin.write("\n")
        run.process.stdin.flush()
        assert run.says() == "given back"
        assert read_holder(tmp_path, board) is None


def test_what_is_no_lock_of_the_rack_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stale or made-up word in the environment holds no board: the lease locks it itself."""
    other = (tmp_path / "other").open("w")
    for told in ("not json", "[1]", json.dumps({"a": 999_999}), json.dumps({"a": other.fileno()})):
        monkeypatch.setenv(HANDED_OVER, told)
        with lease_boards(tmp_path, ["a"], run_id="own"):
            holder = read_holder(tmp_path, "a")
            assert holder
            assert holder.run_id == "own"
    assert not other.closed
    other.close()


@dataclass
class Begun:
    """What `hil run` goes on with."""

    argv: list[str]
    env: dict[str, str]

    @property
    def boards(self) -> list[str]:
        return [word.partition("=")[2] for word in self.argv if word.startswith("--board=")]


def begin(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Begun:
    """Return what `hil run` becomes. Raises what it raises."""
    begun: list[Begun] = []
    monkeypatch.setattr("hil.cli.run.os.execve", lambda _path, argv, env: begun.append(Begun(argv, env)))
    done = CliRunner().invoke(command, ["--rack", str(VIRTUAL), "--no-report", *arguments])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert begun, done.output
    return begun[0]


def test_a_run_takes_no_more_boards_than_it_is_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--at-most 1`: the next such run gets another board, and one that asks for none gets all, by name."""
    monkeypatch.delenv(HANDED_OVER, raising=False)
    out = ("--out", str(tmp_path), "--target", "virtual-esp32")
    both = [board.id for board in load_rack(VIRTUAL).select((), "virtual-esp32")]
    assert len(both) == 2
    first = begin(monkeypatch, *out, "--at-most", "1")
    files = list(json.loads(first.env[HANDED_OVER]).values())
    second = begin(monkeypatch, *out, "--at-most", "1")
    files += json.loads(second.env[HANDED_OVER]).values()
    assert sorted(first.boards + second.boards) == sorted(both)
    with pytest.raises(RigError, match="of 2 boards of rack"):
        begin(monkeypatch, *out, "--at-most", "9")
    for file in files:
        os.close(file)
    monkeypatch.delenv(HANDED_OVER)
    all_of_them = begin(monkeypatch, *out)
    assert all_of_them.boards == []
    assert HANDED_OVER not in all_of_them.env
    assert all(read_holder(lock_dir(load_rack(VIRTUAL), tmp_path), board) is None for board in both)


def test_boards_of_several_targets_are_not_some_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chip of a run would have its share; a run that means one says which, and is told so."""
    with pytest.raises(ConfigError, match="--target virtual-esp32"):
        begin(monkeypatch, "--out", str(tmp_path), "--at-most", "1")
    with pytest.raises(ConfigError, match="on its own boards"):
        begin(monkeypatch, "--more", str(tmp_path), "--at-most", "1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compared", "least_s", "most_s"), [((), 10.0, 200.0), (("--base", "firmware"), 250.0, 900.0)]
)
def test_the_queue_knows_how_long_a_run_takes(
    compared: tuple[str, ...], least_s: float, most_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits has a ticket with the plan's estimate: a boot of the suite, or all looks that it affords."""
    out = ("--out", str(tmp_path), "--target", "virtual-esp32", "--suite", "pr")
    folder = lock_dir(load_rack(VIRTUAL), tmp_path)
    seen: list[float] = []

    def look(path: Path) -> int:
        tickets = [json.loads(ticket.read_text()) for ticket in folder.glob("*.ticket")]
        seen.extend(one["order_s"] - int(one["name"].partition("-")[0]) / 1e9 for one in tickets)
        raise KeyboardInterrupt

    board = load_rack(VIRTUAL).select((), "virtual-esp32")[0].id
    with lease_boards(folder, [board], run_id="other"):
        monkeypatch.setattr("hil.cli.some_boards.click.echo", look)
        done = CliRunner().invoke(
            command, ["--rack", str(VIRTUAL), *out, *compared, "--at-most", "2", "--wait", "30"]
        )
    assert done.exit_code == 1
    assert len(seen) == 1
    assert least_s < seen[0] < most_s
