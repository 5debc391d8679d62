"""What a case of the bench `throughput` asks of the host."""

from __future__ import annotations

from dataclasses import dataclass

from hil.model import Case

UDP_RATE_BPS = 1_048_576  # iperf's own defaults
TCP_LENGTH_BYTES = 16_384  # ESP-IDF's iperf
UDP_LENGTH_BYTES = 1_470
SLACK_S = 5.0


@dataclass(frozen=True)
class Settings:
    """The parameters of a case, read once. Sizes and rates of 0 are iperf's defaults, see the properties."""

    udp: bool
    board_is_client: bool
    reverse: bool
    rate_kbps: int
    length_bytes: int
    amount_bytes: int
    duration_s: int
    omit_s: int
    interval_ms: int
    peer_window_bytes: int
    peer_mss_bytes: int
    nodelay: bool
    timeout_ms: int

    @classmethod
    def of(cls, case: Case) -> Settings:
        """Read the parameters of a case; the thresholds file has checked their ranges."""

        def number(name: str) -> int:
            return int(case.parameters[name] or 0)

        return cls(
            udp=case.parameters["protocol"] == "udp",
            board_is_client=case.parameters["role"] == "client",
            reverse=bool(number("reverse")),
            rate_kbps=number("rate_kbps"),
            length_bytes=number("length_bytes"),
            amount_bytes=number("amount_bytes"),
            duration_s=number("duration_s"),
            omit_s=number("omit_s"),
            interval_ms=number("interval_ms"),
            peer_window_bytes=number("peer_window_bytes"),
            peer_mss_bytes=number("peer_mss_bytes"),
            nodelay=bool(number("nodelay")),
            timeout_ms=number("timeout_ms"),
        )

    @property
    def board_sends(self) -> bool:
        return self.board_is_client != self.reverse

    @property
    def length(self) -> int:
        """Bytes of a write, or of a datagram."""
        return self.length_bytes or (UDP_LENGTH_BYTES if self.udp else TCP_LENGTH_BYTES)

    @property
    def rate_bps(self) -> int:
        """Bits a second offered; 0 where nothing limits them but TCP."""
        return self.rate_kbps * 1000 or (UDP_RATE_BPS if self.udp else 0)

    @property
    def interval_us(self) -> int:
        return self.interval_ms * 1000

    @property
    def rows_max(self) -> int | None:
        """How many full intervals the test has; None where it lasts until an amount has been sent."""
        return None if self.amount_bytes else self.duration_s * 1000 // self.interval_ms

    @property
    def end_timeout_s(self) -> float:
        """How long the host's iperf may take to end once the board has ended."""
        return self.timeout_ms / 1e3 + SLACK_S
