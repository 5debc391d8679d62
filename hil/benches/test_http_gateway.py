# SPDX-License-Identifier: Apache-2.0
"""HTTP gateway: an MQTT request, the GET that the board makes of it, and the MQTT answer."""

from hil.samples import OK, Measure

MQTT_LOST = 8


def test_http_gateway(measure: Measure) -> None:
    """The parts of a request on the board are within its time there, and an old connection costs nothing."""
    for samples in measure():
        is_plain = samples.parameters["http"] == "http"
        for row in samples.rows():
            assert OK <= row.outcome <= MQTT_LOST
            assert not row.reused or row.dns_us == row.tcp_us == row.tls_us == 0
            assert not is_plain or row.tls_us == row.resumed == 0
        for row in samples.rows(outcome=OK):
            assert row.dns_us + row.tcp_us + row.tls_us + row.http_us <= row.board_us
