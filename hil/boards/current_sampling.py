# SPDX-License-Identifier: Apache-2.0
"""The meters of a run: one samples beside each case, and what was drawn is integrated and kept.

A meter that fails takes no latency with it: the figures are then absent, never 0, and the record says why.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hil.base.errors import HilError, RigError
from hil.base.finding import Finding
from hil.base.numeric import np
from hil.boards.current import Meter
from hil.boards.current_track import DrawnCurrent, Spans, Track, Window, drawn_in
from hil.boards.drivers import errors_of
from hil.boards.rack import Board
from hil.boards.rack.current import Current
from hil.model import Case, Scalar, Series
from hil.wire import Note

FOLDER = "current"
UNSEEN_MAX_RATIO = 0.01  # of a window: samples that were lost, or never taken
MESSAGE_COLUMNS = ("sent_us", "publish_us", "arrived_us")  # a row that holds a time there is a message
ASLEEP = "asleep"  # the note of a bench whose board sleeps from then on, ``ms`` long
SETTLE_S = 0.05  # from that note until the board sleeps, at both ends: notes take their time
_RESOLUTIONS = 10  # a sleep current of fewer steps of the meter says nothing
_THREAD_DEADLINE_S = 5.0
_CHECK_S = 0.5


class _Sampler:
    """A thread that reads a meter into a track. What went wrong is kept."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._track = Track()
        self._stopping = threading.Event()
        self.error: HilError | None = None
        self._thread = threading.Thread(target=self._read, name="current", daemon=True)

    def start(self) -> None:
        with errors_of(type(self._meter), RigError):
            self._meter.begin()
        self._thread.start()

    def stop(self) -> Spans:
        """End the thread; return what it saw, by the meter's own seconds. Raises RigError."""
        self._stopping.set()
        self._thread.join(_THREAD_DEADLINE_S)
        if self._thread.is_alive():
            raise RigError("the current meter stopped answering.", next_step="replug it.")
        if self.error:
            raise self.error
        return self._track.spans()

    def _read(self) -> None:
        try:
            while not self._stopping.is_set():
                self._track.add(self._meter.read())
            self._track.add(self._meter.end())
        except HilError as error:
            self.error = error
        except Exception as error:  # a defect of ours must not look like a silent meter
            self.error = RigError(f"the current meter's reader failed: {error!r}.")


class Sampling:
    """The sampling of one case. ``facts`` are of the record, {} where nothing measures the board."""

    def __init__(self) -> None:
        self.facts: Mapping[str, Scalar] = {}
        self.series: Series | None = None  # what was measured, once it is there
        self._asleep: list[Window] = []

    def note(self, note: Note, now_s: float) -> None:
        """Take what the bench says while it measures: from when on, and how long, its board sleeps."""
        if note.kind == ASLEEP and note.fields.get("ms", "").isdecimal():
            until_s = now_s + int(note.fields["ms"]) / 1000 - SETTLE_S  # it was said a moment earlier
            self._asleep.append((now_s + SETTLE_S, until_s))

    @property
    def asleep(self) -> Sequence[Window]:
        return [window for window in self._asleep if window[0] < window[1]]


class Meters:
    """The meters of a run's boards, opened when they are first wanted. ``folder`` is the run's."""

    def __init__(self, folder: Path, open_one: Callable[[Current], Meter] = Current.open) -> None:
        self._folder = folder
        self._open = open_one
        self._meters: dict[str, Meter] = {}

    def prepare(self, board: Board) -> None:
        """Open a board's meter before the board is first used. Raises RigError where it is its supply."""
        if board.current and board.current.driver.feeds:
            self._meter(board, board.current)

    @contextmanager
    def beside(self, board: Board, case: Case) -> Iterator[Sampling]:
        """Sample while a case is measured; its facts are there afterwards, once ``series`` was set.

        Nothing is raised of the meter's. Sampling ends whatever happens.
        """
        sampling = Sampling()
        if board.current is None:
            yield sampling
            return
        try:
            sampler = self._started(board, board.current)
        except HilError as error:
            yield sampling
            sampling.facts = {"error": str(error)}
            return
        try:
            yield sampling
        finally:
            try:
                spans = sampler.stop()
            except HilError as error:
                self._forget(board)
                sampling.facts = {"error": str(error)}
            else:
                if sampling.series:
                    sampling.facts = self._figures(board, case, spans, sampling, sampling.series)

    def close(self) -> None:
        for meter in self._meters.values():
            meter.close()
        self._meters.clear()

    def _meter(self, board: Board, current: Current) -> Meter:
        if board.id not in self._meters:
            self._meters[board.id] = self._open(current)
        return self._meters[board.id]

    def _forget(self, board: Board) -> None:
        """Close a meter that failed; the next case opens it again, wherever it is plugged in by then."""
        if meter := self._meters.pop(board.id, None):
            meter.close()

    def _started(self, board: Board, current: Current) -> _Sampler:
        try:
            sampler = _Sampler(self._meter(board, current))
            sampler.start()
        except HilError:
            self._forget(board)
            raise
        return sampler

    def _figures(
        self, board: Board, case: Case, spans: Spans, sampling: Sampling, series: Series
    ) -> Mapping[str, Scalar]:
        assert board.current
        meter = self._meters[board.id]
        file = self._keep(board, case, spans, meter.origin_s, series)
        meant = {"meter": board.current.type, **({"file": file} if file else {})}
        to_own = [(start - meter.origin_s, end - meter.origin_s) for start, end in series.stretches]
        asleep = [(start - meter.origin_s, end - meter.origin_s) for start, end in sampling.asleep]
        try:
            figures = case_figures(spans, to_own, messages_of(series), board.current.place)
        except RigError as error:
            return {**meant, "error": str(error)}
        slept = sleep_figure(spans, asleep, meter.resolution_ua, board.current.place) if asleep else {}
        return {**meant, **figures, **slept}

    def _keep(self, board: Board, case: Case, spans: Spans, origin_s: float, series: Series) -> str:
        """Write the track, seconds from the case's beginning; return its file, "" where that failed."""
        folder = self._folder / FOLDER / board.id
        zero_s = series.stretches[0][0] - origin_s if series.stretches else 0.0
        with suppress(OSError):  # the figures are in the record; what they are made of is a convenience
            folder.mkdir(parents=True, exist_ok=True)
            numbers = [int(m[1]) for path in folder.iterdir() if (m := re.match(r"(\d+)-", path.name))]
            path = folder / f"{max(numbers, default=0) + 1:02}-{case.bench}.npz"
            np.savez_compressed(
                path,
                start_s=(spans.start_s - zero_s).astype("f4"),
                end_s=(spans.end_s - zero_s).astype("f4"),
                mean_ua=spans.mean_ua.astype("f4"),
                peak_ua=spans.peak_ua.astype("f4"),
                voltage_mv=spans.mv.astype("f4"),
            )
            return str(path.relative_to(self._folder))
        return ""


def messages_of(series: Series) -> int:
    """Return how many messages a case sent, warm-up included; 0 where its bench sends none."""
    column = next((name for name in MESSAGE_COLUMNS if name in series.columns), None)
    return sum(value > 0 for value in series.columns[column]) if column else 0


def case_figures(spans: Spans, windows: Sequence[Window], messages: int, place: str) -> Mapping[str, Scalar]:
    """Return what was drawn while a case was measured, whole nA and nJ. Raises RigError: cannot be told."""
    drawn = _checked(drawn_in(spans, windows), place)
    figures: dict[str, Scalar] = {
        "mean_current_na": round(drawn.mean_ua * 1000),
        "peak_current_na": round(drawn.peak_ua * 1000),
    }
    if messages:
        figures["energy_per_message_nj"] = round(drawn.energy_uj * 1000 / messages)
        figures["messages"] = messages
    return figures


def sleep_figure(
    spans: Spans, windows: Sequence[Window], resolution_ua: float, place: str
) -> Mapping[str, Scalar]:
    """Return the mean current of a sleeping board, or why it cannot be told."""
    try:
        drawn = _checked(drawn_in(spans, windows), place)
    except RigError as error:
        return {"sleep_error": str(error)}
    if drawn.mean_ua < _RESOLUTIONS * resolution_ua:
        return {"sleep_error": f"{place} tells no sleep current below {_RESOLUTIONS * resolution_ua:g} µA"}
    return {"sleep_current_na": round(drawn.mean_ua * 1000)}


def _checked(drawn: DrawnCurrent, place: str) -> DrawnCurrent:
    if drawn.saturated:
        raise RigError(
            f"{place} was beyond its range in {drawn.saturated} samples of the case.",
            next_step="use a meter for larger currents.",
        )
    unseen_s = drawn.of_s - drawn.seen_s
    if not drawn.of_s or unseen_s > UNSEEN_MAX_RATIO * drawn.of_s:
        raise RigError(
            f"{place} lost {unseen_s:.3f} s of the {drawn.of_s:.3f} s of the case.",
            next_step="end other work on the host, or put the meter on a hub of its own.",
        )
    return drawn


def check_meter(board: Board, open_one: Callable[[Current], Meter] = Current.open) -> Finding:
    """Open a board's meter, and sample for half a second; a run uses it the same way."""
    assert board.current
    subject = f"current of {board.id}"
    try:
        meter = open_one(board.current)
        try:
            sampler = _Sampler(meter)
            sampler.start()
            threading.Event().wait(_CHECK_S)
            spans = sampler.stop()
        finally:
            meter.close()
    except HilError as error:
        return Finding(subject, ok=False, sentence=error.sentence, mend=error.next_step)
    drawn = drawn_in(spans, [(float(spans.start_s[0]), float(spans.end_s[-1]))])
    return Finding(subject, ok=True, sentence=f"{board.current.place} measures {drawn.mean_ua / 1000:.3f} mA")
