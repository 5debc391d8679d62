"""From a case's captures, its subscriber's notes and its board's rows to the evidence for the loss ledger."""

from __future__ import annotations

from collections.abc import Sequence

from hil.base.errors import FirmwareError
from hil.model import Series
from hil.network.dissect.segments import Segment
from hil.network.ledger import Arrival, Evidence, Handed, Sighting
from hil.network.ledger.sightings import sighting_of
from hil.network.peers.mqtt.captures import Captured
from hil.network.peers.mqtt.dissecting import Dissected, Seen
from hil.network.peers.mqtt.settings import Settings

_NEEDED = ("planned_us", "sent_us", "done_us", "outcome", "connection", "tcp")


def evidence_of(
    series: Series,
    settings: Settings,
    seen: Seen,
    dissected: Dissected,
    ports: tuple[int, int],
    arrivals: Sequence[Arrival],
) -> Evidence:
    """Put together what is known at each point; ``ports`` are the broker's for board and subscriber.

    Raises FirmwareError: the board's rows lack a column, or it does not say its nonce.
    """
    run, (board_port, subscriber_port) = nonce_of(series), ports

    def arriving(segments: Sequence[Segment], captured: Captured) -> Sighting:
        complete = captured.counts.complete and seen.tls_followed
        return sighting_of(segments, run=run, towards=(board_port,), complete=complete)

    access_point = None
    if seen.access_point and dissected.access_point is not None:
        access_point = arriving(dissected.access_point, seen.access_point)
    return Evidence(
        handed=handed_of(series, settings.qos),
        access_point=access_point,
        broker_in=arriving(dissected.broker, seen.broker),
        broker_out=sighting_of(
            dissected.broker, run=run, leaving=(subscriber_port,), complete=seen.broker.counts.complete
        ),
        arrivals=arrivals,
    )


def handed_of(series: Series, qos: int) -> list[Handed]:
    """Return a message a row. Raises FirmwareError: the rows lack a column."""
    columns = series.columns
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise FirmwareError(
            f"The board's rows of {series.case.bench} lack {', '.join(missing)}; "
            f"they have {', '.join(columns)}.",
            next_step="board and harness are of different versions: build and flash again.",
        )
    rows = zip(columns["planned_us"], columns["outcome"], columns["connection"], columns["tcp"], strict=True)
    return [Handed(number, *row, qos=qos) for number, row in enumerate(rows)]


def nonce_of(series: Series) -> int:
    """Return what marks the messages of this case. Raises FirmwareError: the board does not say it."""
    found = series.device.get("message_run")
    if type(found) is not int:
        raise FirmwareError(
            f"The board does not say the nonce of its messages (message_run is {found!r}), so they cannot be "
            "told from another case's.",
            next_step="board and harness are of different versions: build and flash again.",
        )
    return found
