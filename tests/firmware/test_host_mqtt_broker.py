# SPDX-License-Identifier: Apache-2.0
"""The host's esp-mqtt against a real mosquitto, over TCP, TLS and mutual TLS."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from tests.network.mqtt_driver import Driver
from tests.network.mqtt_rig import Mosquitto

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("transport", "qos"), [("tcp", 0), ("tcp", 1), ("tcp", 2), ("tls", 1), ("mtls", 2)])
def test_message_makes_the_round_trip(driver: Driver, mosquitto: Mosquitto, transport: str, qos: int) -> None:
    """At every QoS and over every transport a message reaches mosquitto and comes back whole."""
    driver.connect(mosquitto.uri(transport), mosquitto.options(transport))
    driver.expect("event CONNECTED")
    assert driver.ask("subscribe hil/loop 2") > 0
    assert driver.expect("event SUBSCRIBED")["failed"] == "0"
    message_id = driver.ask(f"publish hil/loop 700 {qos} 0")
    assert (message_id == 0) == (qos == 0)
    data = driver.expect("event DATA")
    assert (data["topic"], data["len"], data["total"]) == ("hil/loop", "700", "700")
    if qos > 0:
        assert int(driver.expect("event PUBLISHED")["id"]) == message_id
    assert driver.ask("outbox") == 0


def test_message_from_an_event_handler(driver: Driver, mosquitto: Mosquitto) -> None:
    """The API lock is recursive: a handler may publish."""
    driver.connect(mosquitto.uri("tcp"))
    driver.expect("event CONNECTED")
    driver.ask("echo hil/echo")
    first = driver.ask("publish hil/a 10 1 0")
    assert int(driver.expect("event PUBLISHED")["id"]) == first
    second = int(driver.expect("result echo")["value"])
    assert int(driver.expect("event PUBLISHED")["id"]) == second != first


@pytest.mark.parametrize(
    ("where", "options", "told"),
    [
        # A certificate of another authority, or of another host: with mbedTLS's bit for it.
        ("tls", "ca={other}", {"type": "1", "esp": "32794", "flags": "8"}),
        ("tls localhost", "{tls}", {"esp": "32794", "flags": "4"}),
        # Without a CA nothing is verified, so nothing is connected: ESP_ERR_MBEDTLS_SSL_SETUP_FAILED.
        ("tls", "", {"esp": "32791"}),
        # A broker that asks for a client certificate refuses a client without one.
        ("mtls", "{tls}", {"type": "1"}),
    ],
)
def test_whom_a_certificate_does_not_vouch_for_is_refused(
    driver: Driver, mosquitto: Mosquitto, tmp_path: Path, where: str, options: str, told: dict[str, str]
) -> None:
    """An attempt to connect ends with an error that says why."""
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    transport, _, host = where.partition(" ")
    uri = mosquitto.uri(transport).replace("127.0.0.1", host or "127.0.0.1")
    driver.connect(uri, options.format(other=tmp_path / "other.pem", tls=mosquitto.options("tls")))
    assert driver.expect("event ERROR").items() >= told.items()
    driver.expect("event DISCONNECTED")


def test_expired_certificate_is_refused(driver: Driver, authority: trustme.CA, tmp_path: Path) -> None:
    """Dates are checked by the machine's clock (CONFIG_MBEDTLS_HAVE_TIME_DATE): mbedTLS's expired bit."""
    past = datetime(2001, 1, 1, tzinfo=UTC)
    with Mosquitto.run(tmp_path, authority, server_not_after=past) as expired:
        driver.connect(expired.uri("tls"), expired.options("tls"))
        error = driver.expect("event ERROR")
        assert (error["esp"], error["flags"]) == (str(0x801A), "1")
