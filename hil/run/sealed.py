# SPDX-License-Identifier: Apache-2.0
"""Sealed runs: an emulated chip measures a case without a word from outside, twice, and says the same twice.

One case a boot, from a fresh copy of the flash. The host writes the case into the partition ``scratch``,
where the agent finds it (docs/reference/sealed-runs.md), and reads the console then.
Two boots whose consoles differ by a byte are no measurement.
"""

from __future__ import annotations

import functools
import itertools
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.base.project import product_here
from hil.base.reading import IMAGE_MOST_BYTES, read_at_most
from hil.boards.firmware.build_folder import app_image, flash_files
from hil.boards.firmware.partition_table import TABLE_MAX_BYTES, TABLE_OFFSET, TableError, from_binary
from hil.boards.firmware.selection import Firmware, same_flash
from hil.gate.words.undecided import NOT_COMPARED
from hil.model import Case, Comparison, Entry, Fault, NotRun, Role, RunRecord, Scalar, Series
from hil.session.console import plain, text_of
from hil.session.transfer import Transfer, case_words, merge, run_fault
from hil.session.trouble import recognise
from hil.store.run_info import utc_now
from hil.virtual.emulator.driver import CountingEmulator
from hil.virtual.emulator.drivers import target_of
from hil.wire import Begin, Data, End, Message, Reply, WireError, format_command, parse_line

RACK = "emulator"  # in records: there is no rack, only a program
BOOTS = 2
FLASH_BYTES = 4 << 20
MAC = bytes.fromhex("020000770101")
TIMEOUT_S = 300.0  # of the host's: five to fifteen seconds are usual
SCRATCH = "scratch"
_MAGIC = b"HILSEAL1"
_COMPLAINT = b"bad-script"  # of firmware/components/agent/sealed.c; the mark itself may be in instructions
_HEADER = struct.Struct("<8sII")
_ERASED = b"\xff"
_TAG = "sealed"
_POLL_S = 0.05


class RefusedError(FirmwareError):
    """The firmware does not know the bench, or a parameter of it."""


@dataclass(frozen=True)
class Flash:
    """A chip's flash with a build in it; its partition for a script begins at ``scratch``."""

    content: bytes
    scratch: int
    scratch_bytes: int

    def with_script(self, lines: Sequence[bytes]) -> bytes:
        """Return the content with a script of command lines. Raises ConfigError where it does not fit."""
        text = b"".join(lines)
        script = _HEADER.pack(_MAGIC, len(text), zlib.crc32(text)) + text
        if len(script) > self.scratch_bytes:
            raise ConfigError(
                f"a script of {len(script)} bytes does not fit into {SCRATCH} ({self.scratch_bytes} bytes)."
            )
        return self.content[: self.scratch] + script + self.content[self.scratch + len(script) :]


def read_flash(build_dir: Path) -> Flash:
    """Return a chip's flash with a build in it.

    Raises ConfigError where the build has no place for a script, or does not fit into the flash.
    """
    flash = flash_content(build_dir)
    return Flash(flash, *_scratch(build_dir, flash))


def flash_content(build_dir: Path) -> bytes:
    """Return what a chip's flash holds after a build was written to it. Raises ConfigError."""
    flash = bytearray(_ERASED * FLASH_BYTES)
    for address, name in flash_files(build_dir):
        content = read_at_most(build_dir / name, IMAGE_MOST_BYTES)
        start = int(address, 0)
        if start + len(content) > FLASH_BYTES:
            raise ConfigError(f"{build_dir / name} ends beyond the flash of {FLASH_BYTES >> 20} MB.")
        flash[start : start + len(content)] = content
    return bytes(flash)


def _scratch(build_dir: Path, flash: bytes) -> tuple[int, int]:
    try:
        table = from_binary(flash[TABLE_OFFSET : TABLE_OFFSET + TABLE_MAX_BYTES], flash_bytes=FLASH_BYTES)
    except TableError as error:
        raise ConfigError(f"{build_dir}: its partition table cannot be read: {error}.") from error
    for partition in table:
        if partition.name == SCRATCH:
            return partition.offset, partition.size_bytes
    raise ConfigError(
        f"{build_dir}: its partition table has no {SCRATCH!r}, which holds a sealed run's case.",
        next_step="add it as in firmware/partitions.csv, or compare with a later commit.",
    )


def knows_sealed_runs(build_dir: Path) -> bool:
    """Return whether an app looks for a script: it can say that one is damaged. Raises ConfigError."""
    return _COMPLAINT in read_at_most(app_image(build_dir), IMAGE_MOST_BYTES)


def script_of(case: Case) -> list[bytes]:
    """Return the command lines that measure a case."""
    return [format_command("run", case.bench, *case_words(case), tag="s-1")]


def read_console(console: bytes, case: Case, *, board: str, log: str) -> Series:
    """Return the samples that a board printed in a sealed run, which has come to its end.

    Raises:
        RefusedError: it does not know the case.
        FirmwareError: the board contradicts itself, lost a line or measured something else.
        ConfigError, RigError: as the bench itself says on its end line.
    """
    messages = list(_messages(console, board, log))
    refused = next((one for one in messages if isinstance(one, Reply) and not one.ok), None)
    if refused is not None:
        raise RefusedError(f"Board {board} refused {case.case_id} in a sealed run: {refused.code}.", log=log)
    transfers: dict[int, Transfer] = {}
    for message in messages:
        if isinstance(message, Begin | Data | End):
            transfers.setdefault(message.transfer, Transfer(message.transfer)).add(message)
    lacking = [number for number, transfer in transfers.items() if not transfer.complete]
    if lacking or not transfers:
        what = f"transfer {lacking[0]} is not whole" if lacking else "no samples"
        raise FirmwareError(f"Board {board}, {case.case_id} in a sealed run: {what}.", log=log)
    bursts = [transfer.burst() for transfer in transfers.values()]
    bad = next((burst.end for burst in bursts if burst.end.status != "ok"), None)
    if bad is not None:
        raise run_fault(bad, case=case, board=board, log=log)
    return merge(case, bursts)


def _messages(console: bytes, board: str, log: str) -> Iterable[Message]:
    for line in console.splitlines():
        try:
            message = parse_line(line)
        except WireError as error:  # nothing disturbs this console
            raise FirmwareError(f"Board {board}, a sealed run: {error.sentence}", log=log) from error
        if message is not None:
            yield message


def end_of(console: bytes) -> int | None:
    """Return where the last line of a sealed run ends, None where it has not come yet."""
    mark = f" R {_TAG} ".encode()
    at = console.find(mark)
    end = console.find(b"\n", at) if at >= 0 else -1
    return end + 1 if end >= 0 else None


def boot_once(
    emulator: CountingEmulator, flash: Path, folder: Path, *, board: str, timeout_s: float = TIMEOUT_S
) -> tuple[bytes, str]:
    """Boot a chip from a copy of this flash, to the end of its script; return its console and where that is.

    Raises:
        FirmwareError: it crashed, or did not come to the end in time.
        RigError: the emulator failed.
    """
    run = emulator.seal(flash, folder, mac=MAC)
    deadline = time.monotonic() + timeout_s
    try:
        while True:
            console = run.console.read_bytes()
            end = end_of(console)
            if end is not None:
                return console[:end], str(run.console)
            _check_trouble(console, board, str(run.console))
            run.check()
            if time.monotonic() > deadline:
                raise _too_late(console, board, run.console, timeout_s)
            time.sleep(_POLL_S)
    finally:
        run.close()
        (folder / "flash.bin").unlink(missing_ok=True)


def _check_trouble(console: bytes, board: str, log: str) -> None:
    """Raise HilError where the board has crashed: it would boot, and begin, again and again."""
    lines = [plain(text_of(line)).strip() for line in console.splitlines()]
    started = next((number for number, line in enumerate(lines) if line.startswith("rst:")), -1)
    for line in lines[started + 1 :]:
        trouble = recognise(line)
        if trouble is not None:
            raise trouble.error(
                f"Board {board} {trouble.name} in a sealed run: {line}",
                log=log,
                next_step=trouble.next_step,
            )


def _too_late(console: bytes, board: str, log: Path, timeout_s: float) -> HilError:
    said = [line.strip() for line in text_of(console).splitlines() if line.strip()]
    last = said[-1] if said else "nothing"
    return FirmwareError(
        f"Board {board} did not finish its script within {timeout_s:.0f} s; its last line: {last}.",
        log=str(log),
        next_step="look for what it waits for; a firmware without sealed runs waits for a host.",
    )


def first_difference(one: bytes, two: bytes) -> str:
    """Return what differs between two consoles, as a person reads it; "" where nothing does."""
    if one == two:
        return ""
    pairs = itertools.zip_longest(one.splitlines(), two.splitlines(), fillvalue=b"")
    for number, (left, right) in enumerate(pairs, start=1):
        if left != right:
            return f"line {number} is {_quoted(left)} in one and {_quoted(right)} in the other"
    return "their line ends differ"


def _quoted(line: bytes) -> str:
    return repr(line.decode("latin-1")[:80])


@dataclass(frozen=True)
class SealedPlan:
    """What is measured: ``images`` by role, each case in two boots of each, ``jobs`` chips at once.

    ``not_compared`` is why a base that there is has no role in it, "" where it has.
    """

    run_id: str
    emulator: CountingEmulator
    images: Mapping[Role, Firmware]
    cases: Sequence[Case]
    folder: Path
    jobs: int = 1
    not_compared: str = ""

    @property
    def chip(self) -> str:
        return self.emulator.chip_name

    @property
    def target(self) -> str:
        return target_of(self.chip)

    @functools.cached_property
    def identical(self) -> bool:
        """Whether candidate and base are the same bytes; then there is nothing to measure."""
        base = self.images.get("base")
        return base is not None and same_flash(self.images["candidate"].build_dir, base.build_dir)


def comparison_of(plan: SealedPlan) -> Comparison | None:
    """Return what the run compares, None where there is no base."""
    base = plan.images.get("base")
    if base is None:
        return None
    return Comparison(
        run_id=plan.run_id,
        rack=RACK,
        image=plan.chip,
        target=plan.target,
        boards=(plan.chip,),
        role="base",
        candidate_sha256=plan.images["candidate"].sha256,
        other_sha256=base.sha256,
        looks=((BOOTS, BOOTS),),
        identical=plan.identical,
        cases=tuple(case.case_id for case in plan.cases),
        product=product_here(),
    )


def measure_sealed(
    plan: SealedPlan, append: Callable[[Entry], None], say: Callable[[Case, Role], None]
) -> None:
    """Measure all cases of a plan, and hand each entry to ``append``: records, or the fault in their place.

    Of a base that knows no sealed runs nothing is measured, and it says so.

    Raises ConfigError where a build cannot be measured so, RigError where the disk takes no entry.
    """
    roles = [role for role, image in plan.images.items() if _is_measurable(role, image)]
    too_old = "the base's commit is older than sealed runs" if len(roles) < len(plan.images) else ""
    why = plan.not_compared or too_old
    for case in plan.cases if why else ():
        append(NotRun(plan.run_id, plan.chip, case.case_id, f"{NOT_COMPARED}{why}", "not-compared"))
    work = [(case, role) for case in plan.cases for role in roles]
    flashes = {role: read_flash(plan.images[role].build_dir) for role in roles}
    with ThreadPoolExecutor(max_workers=plan.jobs) as pool:
        futures = [pool.submit(_measure, plan, case, role, flashes[role]) for case, role in work]
        try:
            for (case, role), future in zip(work, futures, strict=True):
                for entry in future.result():
                    append(entry)
                say(case, role)
        finally:
            for future in futures:
                future.cancel()


def _is_measurable(role: Role, image: Firmware) -> bool:
    if knows_sealed_runs(image.build_dir):
        return True
    if role == "base":
        return False
    raise ConfigError(
        f"{image.build_dir} does not support sealed runs: its agent would wait for a host.",
        next_step="build it from a commit that has firmware/components/agent/sealed.c.",
    )


def _measure(plan: SealedPlan, case: Case, role: Role, build: Flash) -> list[Entry]:
    """Return the records of a case, or what stands in their place: a fault, or that there is no base."""
    place = plan.folder / case.case_id.replace("/", ".").replace(",", ".") / role
    try:
        boots = _boots(plan, build.with_script(script_of(case)), place)
        consoles = [console for console, _log in boots]
        if difference := first_difference(consoles[0], consoles[1]):
            raise RigError(
                f"Two sealed boots of the {role} with {case.case_id} are not equal, so they measure nothing: "
                f"{difference}.",
                log=str(place),
                next_step="look for external input: a time, or a random number.",
            )
        series = read_console(consoles[0], case, board=plan.chip, log=boots[0][1])
        _check_image(plan.images[role], series, role)
    except RefusedError as error:
        if role == "base":  # it is older than the bench
            return [NotRun(plan.run_id, plan.chip, case.case_id, error.sentence, "not-compared")]
        return [_fault(plan, case, error)]
    except HilError as error:
        return [_fault(plan, case, error)]
    first = list(plan.images).index(role) * BOOTS
    return [_record(plan, role, series, first + number) for number in range(BOOTS)]


def _boots(plan: SealedPlan, flash: bytes, place: Path) -> list[tuple[bytes, str]]:
    """Boot a flash BOOTS times; return each console and where that is. Raises as boot_once()."""
    place.mkdir(parents=True, exist_ok=True)
    image = place / "flash.bin"
    image.write_bytes(flash)
    try:
        return [
            boot_once(plan.emulator, image, place / f"boot{number}", board=plan.chip)
            for number in range(BOOTS)
        ]
    finally:
        image.unlink()


def _fault(plan: SealedPlan, case: Case, error: HilError) -> Fault:
    return Fault(plan.run_id, error.owner, int(error.exit_code), str(error), plan.chip, case.case_id)


def _check_image(firmware: Firmware, series: Series, role: Role) -> None:
    if series.firmware_sha256 != firmware.sha256:
        raise FirmwareError(
            f"The {role} measured as image {series.firmware_sha256}, but its build is {firmware.sha256}."
        )


def _record(plan: SealedPlan, role: Role, series: Series, boot_index: int) -> RunRecord:
    rig: dict[str, Scalar] = {"rack": RACK, "sealed": True}
    return RunRecord(
        run_id=plan.run_id,
        rack=RACK,
        board=plan.chip,
        target=plan.target,
        kind="emulated",
        role=role,
        boot_index=boot_index,
        bench=series.case.bench,
        parameters=series.case.parameters,
        firmware_sha256=series.firmware_sha256,
        ruler_hash=series.ruler_hash,
        protocol_version=series.protocol_version,
        clock=series.clock,
        started_utc=utc_now(),
        warmup_rows=series.warmup_rows,
        columns=series.columns,
        environment={
            "device": dict(series.device),
            "rig": rig,
            "emulation": plan.emulator.sealed_environment(),
        },
        product=product_here(),
    )
