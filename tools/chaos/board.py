# SPDX-License-Identifier: Apache-2.0
"""Faults of a board, made by the virtual board's own control (docs/explain/virtual-board.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread

from hil.base.errors import HilError
from hil.boards.firmware import otadata
from hil.boards.firmware.build import FIRMWARE_DIR
from hil.boards.firmware.partition_table import read_csv
from tests.lab import wait_for
from tools.chaos.fault import HOSTILE, Act, Fault, Moment, Owner
from tools.chaos.trial import Trial


def given(name: str, value: object = None) -> Act:
    """Return what gives board b1 a fault of the virtual board, until the run is over."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        trial.ground.board().fault(name, value)
        yield
        trial.ground.board().clear()

    return act


@contextmanager
def _hostile_words(trial: Trial) -> Iterator[None]:
    """Let the app panic with words on its lips that a terminal would obey; workflows are guarded by steps."""
    board = trial.ground.board()
    board.fault("say", f"Guru Meditation Error: Core  0 panic'ed (LoadProhibited). {HOSTILE}")
    board.fault("panic")
    yield
    assert trial.running
    said = trial.running.said()
    trial.found += [f"obeys {words!r}" for words in ("\x1b]0;", "\x07", "\u202e") if words in said]
    trial.found += [] if "pwned" in said else ["the words were not quoted"]


def _once_it_runs(name: str) -> Act:
    """Return what gives board b1 a fault as soon as the app of its next boot has begun."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        board = trial.ground.board()
        boots = board.state()["boots"]

        def has_begun() -> bool:
            state = board.state()
            return state["boots"] > boots and state["app_pid"] is not None

        wait_for(has_begun, lambda: "b1 did not boot")
        board.fault(name)
        yield

    return act


@contextmanager
def _boot_loop(trial: Trial) -> Iterator[None]:
    """Let the app of each boot of board b1 panic as it begins, until the run is over."""
    board, over = trial.ground.board(), Event()

    def panic() -> None:
        boots = -1
        while not over.wait(0.01):
            state = board.state()
            if state["boots"] != boots and state["app_pid"] is not None:
                boots = state["boots"]
                with suppress(HilError):  # it has ended since
                    board.fault("panic")

    thread = Thread(target=panic)
    thread.start()
    yield
    over.set()
    thread.join()


def worn(what: str) -> Act:
    """Return what lets flash of board b1 lose a bit, which its next boot finds at once."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        trial.ground.board().fault("corrupt_image", what)
        trial.ground.board().power("cycle")
        yield

    return act


def powered(state: str) -> Act:
    """Return what switches the supply of board b1, and gives it back after the run."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        trial.ground.board().request(op="power", state=state)
        yield
        trial.ground.board().request(op="power", state="on")

    return act


PLACES = {one.name: one for one in read_csv(FIRMWARE_DIR / "partitions.csv")}


def _write(trial: Trial, *contents: tuple[int, bytes]) -> None:
    """Change flash of board b1 behind everybody's back."""
    with trial.ground.paths.board_flash("b1").open("r+b", buffering=0) as flash:
        for offset, content in contents:
            flash.seek(offset)
            flash.write(content)


@contextmanager
def _stale_nvs(trial: Trial) -> Iterator[None]:
    """Leave in NVS what no firmware has written."""
    nvs = PLACES["nvs"]
    _write(trial, (nvs.offset, trial.chance.randbytes(nvs.size_bytes)))
    yield


def _boot_another(trial: Trial, slot: int, chosen: bytes) -> None:
    """Put another image into a slot, and into otadata what is chosen; and start the board."""
    app = next(trial.ground.slower_firmware.glob("hil*.bin")).read_bytes()
    chosen = chosen.ljust(2 * otadata.SECTOR_BYTES, b"\xff")
    _write(trial, (PLACES[f"ota_{slot}"].offset, app), (PLACES["otadata"].offset, chosen))
    trial.ground.board().power("cycle")


def another_image(slot: int) -> Act:
    """Return what lets the board boot another image, from a slot that is chosen."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        _boot_another(trial, slot, otadata.sector(slot + 1))
        yield

    return act


@contextmanager
def _rolls_back(trial: Trial) -> Iterator[None]:
    """Let the image that runs be one that has not confirmed itself, and the other slot's one that has: the
    boot loader gives it up at the reset that follows."""
    tried = otadata.pack(3, otadata.STATE_PENDING_VERIFY).ljust(otadata.SECTOR_BYTES, b"\xff")
    _boot_another(trial, 1, tried + otadata.pack(2, otadata.STATE_VALID))
    yield


def _fault(
    name: str, act: Act, moment: Moment, *owners: Owner, says: str = "", suite: str = "quick"
) -> Fault:
    return Fault("board", name, act, moment, owners, says=says, suite=suite)


FAULTS: Sequence[Fault] = (
    _fault("no answer to sync", given("no_sync"), "before", "rig", says="b1"),
    _fault("wrong chip on the port", given("wrong_chip"), "before", "configuration", says="ESP32-S2|esp32s2"),
    _fault("stub that never says OHAI", given("no_stub"), "before", "rig", says="b1"),
    _fault("verify mismatch", given("bad_md5"), "before", "rig", says="b1"),
    _fault("write error", given("write_error"), "before", "rig", says="refused what was to be written"),
    _fault("another board on its port", given("other_mac"), "before", "configuration", says="another board"),
    _fault("cable drops once in flash", given("disconnect", 3), "before", "nobody"),
    _fault("cable drops whenever flashing", given("disconnect", "always"), "before", "rig", says="b1"),
    _fault("cable drops as the app starts", given("disconnect", "boot"), "before", "nobody"),
    _fault("cable drops while measuring", given("disconnect", "now"), "measuring", "rig", "nobody"),
    _fault("cable pulled before", given("disconnect", "for-good"), "before", "rig", says="b1"),
    _fault("cable pulled while flashing", given("disconnect", "for-good"), "flashing", "rig", says="b1"),
    _fault("cable pulled while measuring", given("disconnect", "for-good"), "measuring", "rig", says="b1"),
    *(
        _fault(f"panic {cause}", given("panic", cause), "measuring", "firmware", says=cause)
        for cause in (
            "LoadProhibited",
            "StoreProhibited",
            "IllegalInstruction",
            "IntegerDivideByZero",
            "InstrFetchProhibited",
        )
    ),
    _fault("hostile words, and a panic", _hostile_words, "measuring", "firmware", says="panicked"),
    _fault("panic as it boots", _once_it_runs("panic"), "booting", "firmware"),
    _fault("panic in each boot", _boot_loop, "booting", "firmware", says="panick"),
    _fault("assertion", given("abort"), "measuring", "firmware", says="abort"),
    _fault(
        "stack overflow", given("abort", "stack-overflow"), "measuring", "firmware", says="overflowed a stack"
    ),
    _fault("out of heap", given("abort", "out-of-memory"), "measuring", "firmware", says="ran out of heap"),
    _fault("task watchdog", given("watchdog", "task"), "measuring", "firmware", says="watchdog"),
    _fault(
        "interrupt watchdog", given("watchdog", "interrupt"), "measuring", "firmware", says="wdt|watchdog"
    ),
    _fault("brownout once while measuring", given("brownout", 1), "measuring", "rig", says="[Bb]rownout"),
    _fault("brownout in each boot", given("brownout", 50), "before", "rig", says="[Bb]rownout"),
    _fault("200 bytes of noise at each boot", given("garbage", 200), "before", "nobody"),
    _fault("5,000 bytes of noise while measuring", given("garbage", 5000), "measuring", "nobody"),
    _fault("app frozen from its boot", given("silent"), "before", "rig", "firmware", says="b1"),
    _fault("app frozen while measuring", given("silent"), "measuring", "rig", "firmware", says="b1"),
    _fault("hang that a reset mends", given("hang", "reset"), "measuring", "firmware", says="hung"),
    _fault("hang that a cut of the supply mends", given("hang", "power"), "measuring", "nobody"),
    _fault("flash loses a bit of the app", given("corrupt_image", "app"), "before", "nobody"),
    _fault("flash loses a bit of the bootloader", given("corrupt_image", "bootloader"), "before", "nobody"),
    _fault("flash loses a bit of the table", given("corrupt_image", "partition-table"), "before", "nobody"),
    _fault("flash loses a bit of otadata", given("corrupt_image", "otadata"), "before", "nobody"),
    *(
        # what broke after it had booted the firmware may have written itself
        _fault(
            f"flash loses a bit of the {what} while measuring", worn(what), "measuring", *owners, says="b1"
        )
        for what, owners in (
            ("app", ("rig", "firmware")),  # rig: the other slot boots
            ("bootloader", ("rig", "firmware")),
            ("partition-table", ("rig", "firmware")),
        )
    ),
    _fault("supply cut before", powered("off"), "before", "nobody", "rig"),
    _fault("supply cut while flashing", powered("off"), "flashing", "rig", "nobody"),
    _fault("supply cut while measuring", powered("off"), "measuring", "nobody", "rig"),
    _fault("supply blinks while measuring", powered("cycle"), "measuring", "rig", says="b1"),
    _fault("bit flips 1e-5", given("bit_flips", 10), "before", "nobody"),
    _fault("bit flips 1e-4", given("bit_flips", 100), "before", "nobody"),
    _fault("bit flips 1e-3", given("bit_flips", 1000), "before", "nobody"),
    _fault("torn lines, one in ten", given("torn_lines", 10), "before", "nobody"),
    _fault("torn lines, one in three", given("torn_lines", 3), "before", "nobody"),
    _fault("10 MB of log while measuring", given("flood", 10_000_000), "measuring", "nobody"),
    _fault("stuck in download mode", given("download"), "before", "rig", says="b1"),
    _fault("stale NVS", _stale_nvs, "before", "nobody"),
    _fault("another image in its slot", another_image(0), "booting", "rig", "configuration", says="image"),
    _fault("another slot is chosen", another_image(1), "booting", "rig", "configuration", says="image"),
    _fault("slot rolls back as it boots", _rolls_back, "booting", "rig", "configuration", says="image"),
    _fault("slot rolls back while measuring", _rolls_back, "measuring", "rig", says="b1"),
    _fault("crystal 100 ppm fast", given("crystal", 100), "before", "nobody"),
    _fault("crystal 5 % fast", given("crystal", 50_000), "before", "nobody"),
    _fault("crystal 5 % slow", given("crystal", -50_000), "before", "nobody"),
    _fault("reset line dead", given("no_reset"), "before", "rig", says="b1"),
)
