"""Collects the lines of one transfer, says what is missing, and merges the transfers of a run."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hil.base.errors import FirmwareError
from hil.model import Case, Scalar, Series
from hil.wire import Begin, Data, End
from hil.wire.packing import unpack_columns


@dataclass(frozen=True)
class Burst:
    """One transfer, complete and checked."""

    begin: Begin
    end: End
    columns: tuple[tuple[int, ...], ...]


class Transfer:
    """The lines of one transfer as they come in, in any order, some of them twice."""

    def __init__(self, transfer: int) -> None:
        self.transfer = transfer
        self._begin: Begin | None = None
        self._end: End | None = None
        self._blocks: dict[int, bytes] = {}

    def add(self, message: Begin | Data | End) -> None:
        """Take a line.

        Raises:
            FirmwareError: a repeated line differs from the first.
        """
        if isinstance(message, Begin):
            self._begin = self._begin or message
        elif isinstance(message, End):
            self._end = self._end or message
        elif self._blocks.setdefault(message.block, message.packed) != message.packed:
            raise FirmwareError(
                f"Block {message.block} of transfer {self.transfer} was sent twice with different content."
            )

    @property
    def started(self) -> bool:
        return self._begin is not None or self._end is not None or bool(self._blocks)

    @property
    def ended(self) -> bool:
        return self._end is not None

    @property
    def frame_complete(self) -> bool:
        """True when both the begin and the end line are there."""
        return self._begin is not None and self._end is not None

    def missing_blocks(self) -> tuple[int, ...]:
        """Return the numbers of the blocks still missing, as far as the begin or end line tells them."""
        frame = self._begin or self._end
        return tuple(block for block in range(frame.blocks if frame else 0) if block not in self._blocks)

    @property
    def complete(self) -> bool:
        return self.frame_complete and not self.missing_blocks()

    @property
    def lines_received(self) -> int:
        return len(self._blocks) + (self._begin is not None) + (self._end is not None)

    def burst(self) -> Burst:
        """Check and unpack a complete transfer.

        Raises:
            FirmwareError: lengths, checksum or packing contradict each other.
        ValueError: the transfer is not complete.
        """
        begin, end = self._begin, self._end
        if begin is None or end is None:
            raise ValueError(f"transfer {self.transfer} is not complete")
        packed = b"".join(self._blocks[block] for block in sorted(self._blocks))
        self._check((begin.rows, begin.blocks), (end.rows, end.blocks), "rows and blocks, begin and end")
        self._check(len(self._blocks), end.blocks, "blocks sent and announced")
        self._check(f"{zlib.crc32(packed):08x}", f"{end.crc32:08x}", "CRC-32 of the data and of the end line")
        try:
            columns = unpack_columns(packed, columns=len(begin.columns), rows=begin.rows)
        except ValueError as error:
            raise FirmwareError(f"Transfer {self.transfer} does not unpack: {error}.") from error
        return Burst(begin=begin, end=end, columns=columns)

    def _check(self, left: object, right: object, what: str) -> None:
        if left != right:
            raise FirmwareError(f"Transfer {self.transfer} contradicts itself: {what}: {left} and {right}.")


def parameter_text(value: Scalar) -> str:
    """Return a parameter as it stands on a command line; true and false are 1 and 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def merge(case: Case, bursts: Sequence[Burst]) -> Series:
    """Join the bursts of a run to one series; of a device value that they all give, the last counts.

    Raises:
        FirmwareError: the bursts are not those of one run of this case.
    """
    first = bursts[0].begin
    _check_case(case, first)
    for number, burst in enumerate(bursts, start=1):
        _check_burst(number, burst.begin, first)
    device: dict[str, Scalar] = {}
    for burst in bursts:
        device.update(burst.end.environment)
    return Series(
        case=case,
        columns={
            name: tuple(value for burst in bursts for value in burst.columns[index])
            for index, name in enumerate(first.columns)
        },
        warmup_rows=first.warmup_rows,
        clock=first.clock,
        firmware_sha256=first.firmware_sha256,
        ruler_hash=first.ruler_hash,
        protocol_version=first.protocol_version,
        device=device,
    )


def _check_case(case: Case, begin: Begin) -> None:
    asked: Mapping[str, str] = {key: parameter_text(value) for key, value in case.parameters.items()}
    if begin.bench != case.bench or dict(begin.parameters) != asked:
        differing = sorted(set(asked.items()) ^ set(begin.parameters.items()))
        raise FirmwareError(
            f"The board measured {begin.bench} with other parameters than {case.case_id}: "
            f"{', '.join('='.join(pair) for pair in differing)}.",
            next_step="give thresholds/ and the bench's C file the same parameters.",
        )


def _check_burst(number: int, begin: Begin, first: Begin) -> None:
    same = ("bench", "parameters", "columns", "clock", "firmware_sha256", "ruler_hash", "protocol_version")
    changed = [name for name in same if getattr(begin, name) != getattr(first, name)]
    if begin.burst != number or changed or (number > 1 and begin.warmup_rows):
        raise FirmwareError(
            f"Burst {begin.burst} of {first.bench} is not the {number}. of its run "
            f"(transfer {begin.transfer}{', changed: ' + ', '.join(changed) if changed else ''})."
        )
    if begin.warmup_rows > begin.rows:
        raise FirmwareError(f"{first.bench} announces {begin.warmup_rows} warm-up rows of {begin.rows} rows.")
