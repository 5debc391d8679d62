# SPDX-License-Identifier: Apache-2.0
"""What iw prints, as its source and real drivers have it, and what a record says of a case from two looks."""

from __future__ import annotations

from hil.network.radio import RadioLook, changes, read_iw

MAC = "24:0a:c4:00:00:01"
INFO = """\
Interface wlan0
\tifindex 3
\twdev 0x1
\taddr 02:00:5e:00:53:02
\tssid hil-lab
\ttype AP
\twiphy 0
\tchannel 6 (2437 MHz), width: 20 MHz, center1: 2437 MHz
\ttxpower 12.00 dBm
\tmulticast TXQ:
\t\tqsz-byt\tqsz-pkt\tflows\tdrops\tmarks\toverlmt\thashcol\ttx-bytes\ttx-packets
\t\t0\t0\t0\t0\t0\t0\t0\t0\t\t0
"""
STATION = """\
Station 24:0A:C4:00:00:01 (on wlan0)
\tinactive time:\t{idle} ms
\trx bytes:\t{rx_bytes}
\trx packets:\t12577
\ttx bytes:\t664158
\ttx packets:\t{tx}
\ttx retries:\t{retries}
\ttx failed:\t{failed}
\trx drop misc:\t207
\tsignal:  \t-60 [-62, -64] dBm
\tsignal avg:\t-59 [-61, -63] dBm
\ttx bitrate:\t65.0 MBit/s MCS 7
\trx bitrate:\t72.2 MBit/s MCS 7 short GI
\texpected throughput:\t32.0Mbps
\tauthorized:\tyes
\tDTIM period:\t2
\tbeacon interval:100
\tconnected time:\t{connected} seconds
\tassociated at [boottime]:\t20613.215s
Station 24:0a:c4:00:00:02 (on wlan0)
\ttx retries:\t7
"""
SURVEY = """\
Survey data from wlan0
\tfrequency:\t\t\t2412 MHz
\tnoise:\t\t\t\t-92 dBm
\tchannel active time:\t\t72 ms
\tchannel busy time:\t\t20 ms
Survey data from wlan0
\tfrequency:\t\t\t2437 MHz [in use]
\tnoise:\t\t\t\t-95 dBm
\tchannel active time:\t\t{active} ms
\tchannel busy time:\t\t{busy} ms
\tchannel receive time:\t\t440 ms
\tchannel BSS receive time:\t17 ms
\tchannel transmit time:\t\t{sent} ms
"""


def look(
    *,
    tx: int = 100,
    retries: int = 5,
    connected: int = 60,
    active: int = 1000,
    busy: int = 300,
    sent: int = 9,
) -> RadioLook:
    own = {"tx": tx, "retries": retries, "failed": retries // 2, "connected": connected}
    station = STATION.format(idle=3, rx_bytes=1, **own)
    return read_iw(INFO + station + SURVEY.format(active=active, busy=busy, sent=sent))


def test_a_case_is_told_by_what_was_added() -> None:
    """Counters are differences, levels the last ones, of this board and of the channel in use alone."""
    facts = changes(look(), look(tx=350, retries=25, connected=70, active=11_000, busy=4300, sent=509), MAC)
    assert facts == (
        {"channel": 6, "frequency_mhz": 2437, "width_mhz": 20, "power_dbm": 12.0, "noise_dbm": -95}
        | {"associated": True, "reassociated": False, "rssi_dbm": -60, "rssi_average_dbm": -59}
        | {"rx_packets_count": 0, "rx_bytes": 0, "rx_dropped_count": 0, "rx_rate_kbps": 72_200}
        | {"tx_packets_count": 250, "tx_bytes": 0, "tx_retries_count": 20, "tx_failed_count": 10}
        | {"tx_rate_kbps": 65_000, "channel_active_ms": 10_000, "channel_busy_ms": 4000}
        | {"channel_receive_ms": 0, "channel_transmit_ms": 500}
    )


def test_a_board_that_joined_anew_has_counters_of_its_own() -> None:
    """With the association its counters begin anew: what they say is said, and that it joined."""
    facts = changes(look(tx=900, retries=80), look(tx=30, retries=2, connected=4), MAC)
    assert (facts["reassociated"], facts["tx_packets_count"], facts["tx_retries_count"]) == (True, 30, 2)


def test_a_channels_counter_that_goes_backwards_is_no_figure() -> None:
    """Some drivers clear them (ath10k): None then, never a wrong number; the others stay."""
    facts = changes(look(active=5000, busy=400), look(active=6000, busy=100), MAC)
    assert (facts["channel_active_ms"], facts["channel_busy_ms"]) == (1000, None)


def test_what_is_not_said_is_not_there() -> None:
    """A driver without survey and retries gives fewer facts; a board that is away, or unnamed, is said so."""
    bare = read_iw(f"Station {MAC} (on wlan0)\n\tsignal:\t-70 dBm\n")
    assert changes(bare, bare, MAC) == {"associated": True, "reassociated": False, "rssi_dbm": -70}
    assert changes(look(), read_iw(INFO), MAC)["associated"] is False
    assert "names no mac" in str(changes(look(), look(), "")["error"])
    assert changes(RadioLook(error="iw is not installed"), look(), MAC) == {"error": "iw is not installed"}
