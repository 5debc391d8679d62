"""Datagrams that came late are no loss: takes them back from the intervals that counted them as lost.

A receiver counts a gap in the numbers as lost when it shows, and a datagram that fills it later as out of
order. iperf 2.1.8 takes what comes late off the losses of its own interval, and forgets the rest where these
are fewer (its line of the whole test forgets none); the board takes the rest off the intervals that follow.
Here it goes to where it was lost: the rows before, the latest first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def settle_losses(
    columns: Mapping[str, Sequence[int]], *, length_bytes: int, whole_lost: int | None
) -> tuple[int, ...]:
    """Return ``lost_count`` of the rows so that their sum is at most what the whole test lost.

    Every datagram has ``length_bytes``. A row's own losses are what it expected and did not receive; a
    board's count is larger where datagrams came twice, which it can tell. ``whole_lost`` is None where
    nobody knows it.
    """
    settled: list[int] = []
    names = ("expected_count", "received_bytes", "lost_count", "out_of_order_count")
    for expected, received_bytes, lost, late in zip(*(columns[name] for name in names), strict=True):
        missing = expected - received_bytes // length_bytes
        _take_back(settled, min(late, max(0, -missing)))
        settled.append(max(0, lost, missing))
    if whole_lost is not None:  # what came late after the last row
        _take_back(settled, max(0, sum(settled) - whole_lost))
    return tuple(settled)


def _take_back(settled: list[int], late: int) -> None:
    for index in reversed(range(len(settled))):
        taken = min(late, settled[index])
        settled[index] -= taken
        late -= taken
