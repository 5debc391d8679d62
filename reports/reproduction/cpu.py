"""How busy the cores were, and what a byte cost: of a chip's cores only, never of a host's."""

from __future__ import annotations

from dataclasses import dataclass

from hil.model import RunRecord
from reports.reproduction.document import NONE, Table, number, percent
from reports.reproduction.records import BoardRun, fact, whole, word
from reports.reproduction.throughput import BENCH, direction, is_plain, throughput_of

CORES = ("core0", "core1")


@dataclass(frozen=True)
class Load:
    """Busy time of the cores over a stretch of ``wall_us`` in which ``moved_bytes`` were sent or received.

    A core that was not measured is None; ``host`` where they are the host's.
    """

    busy_us: tuple[float | None, float | None]
    wall_us: float
    moved_bytes: float | None
    mhz: float | None
    host: bool

    @property
    def shares(self) -> tuple[float | None, ...]:
        """Return how much of the stretch each core was busy."""
        return tuple(None if busy is None else busy / self.wall_us for busy in self.busy_us)

    @property
    def cycles_per_byte(self) -> float | None:
        """Return the cycles of both cores for each byte; None for a host, which is no chip."""
        busy = [core for core in self.busy_us if core is not None]
        if self.host or not busy or not self.mhz or not self.moved_bytes:
            return None
        return sum(busy) * self.mhz / self.moved_bytes


def load_of(record: RunRecord) -> Load | None:
    """Return the cores' load over the steady stretch: cpu_busy_core<n>_us of cpu_wall_us, and steady_bytes.

    A host's names begin with host_. None where it was not recorded.
    """
    for prefix in ("", "host_"):
        wall = fact(record, "device", f"{prefix}cpu_wall_us")
        first, second = (fact(record, "device", f"{prefix}cpu_busy_{core}_us") for core in CORES)
        if wall and (first is not None or second is not None):
            host = bool(prefix) or record.kind == "virtual"
            mhz, moved_bytes = (fact(record, "device", name) for name in ("cpu_mhz", "steady_bytes"))
            return Load((first, second), wall, moved_bytes, mhz, host)
    return None


def cpu_table(run: BoardRun) -> Table | None:
    """Return the load of the cores by direction and protocol; None where no record has it."""
    rows, data, host = [], [], False
    for record in run.of(BENCH):
        load = load_of(record)
        if load is None or not is_plain(record):
            continue
        host = host or load.host
        mbps = throughput_of([record]).p50.value
        cycles = load.cycles_per_byte
        rate = whole(record, "rate_kbps")
        name = f"{word(record, 'protocol').upper()} {direction(record)}"
        name += f" at {rate / 1000:g} Mbit/s" if rate else ""
        row = (name, str(whole(record, "turn") + 1), str(record.boot_index + 1), number(mbps))
        rows.append((*row, *map(percent, load.shares), number(cycles) if cycles is not None else NONE))
        data.append(
            {"label": name, "p50_mbps": mbps, "core0": load.shares[0], "core1": load.shares[1]}
            | {"cycles_per_byte": cycles, "host": load.host}
        )
    if not rows:
        return None
    columns = ("", "turn", "boot", "p50 Mbit/s", "core 0 busy", "core 1 busy", "cycles a byte")
    notes = (_HOST_NOTE,) if host else ("busy: of both cores over the measured stretch, all tasks together",)
    return Table("cpu", "Load of the cores", columns, tuple(rows), notes, tuple(data))


_HOST_NOTE = (
    "The cores are two CPUs of the host that stands in for the chip (virtual). What a byte costs an ESP32 "
    "does not follow from them, so there are no cycles."
)
