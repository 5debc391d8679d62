"""The host build is configured as the chip is: sdkconfig.h mirrors the sdkconfig.defaults files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

FIRMWARE = Path(__file__).resolve().parent.parent / "firmware"
DEFAULTS = (FIRMWARE / "sdkconfig.defaults", FIRMWARE / "sdkconfig.defaults.esp32")
MIRROR = FIRMWARE / "host" / "idf" / "include" / "sdkconfig.h"

# Not in sdkconfig.h, and why.
EXCEPTIONS: Mapping[str, str] = {
    "CONFIG_BOOTLOADER_LOG_LEVEL_WARN": "the host build has no boot loader",
    "CONFIG_FREERTOS_CHECK_STACKOVERFLOW_CANARY": "a guard page behind each stack finds an overflow",
}
# Of each Kconfig choice exactly one is set.
CHOICES = (
    ("CONFIG_ESP_CONSOLE_UART_DEFAULT", "CONFIG_ESP_CONSOLE_UART_CUSTOM", "CONFIG_ESP_CONSOLE_NONE"),
    ("CONFIG_ESP_CONSOLE_UART_CUSTOM_NUM_0", "CONFIG_ESP_CONSOLE_UART_CUSTOM_NUM_1"),
    ("CONFIG_MQTT_USE_CORE_0", "CONFIG_MQTT_USE_CORE_1"),
    ("CONFIG_COMPILER_OPTIMIZATION_PERF", "CONFIG_COMPILER_OPTIMIZATION_SIZE"),
    ("CONFIG_PARTITION_TABLE_CUSTOM", "CONFIG_PARTITION_TABLE_SINGLE_APP"),
)


def read_defaults(text: str) -> dict[str, str]:
    """Return what the lines of an sdkconfig.defaults come to in sdkconfig.h: y is 1, n is no macro at all."""
    found = re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE)
    return {key: {"y": "1", "n": ""}.get(value, value) for key, value in found}


def wanted() -> dict[str, str]:
    return {key: value for path in DEFAULTS for key, value in read_defaults(path.read_text("utf-8")).items()}


def mirrored() -> dict[str, str]:
    return dict(re.findall(r"^#define (CONFIG_\w+) (.+)$", MIRROR.read_text("utf-8"), re.MULTILINE))


def test_values_read_as_kconfig_means_them() -> None:
    """y, n, numbers, hexadecimal numbers and texts."""
    text = '# CONFIG_X=y\nCONFIG_A=y\nCONFIG_B=n\nCONFIG_C=12\nCONFIG_D=0x10\nCONFIG_E="a b"\n'
    expected = {"CONFIG_A": "1", "CONFIG_B": "", "CONFIG_C": "12", "CONFIG_D": "0x10", "CONFIG_E": '"a b"'}
    assert read_defaults(text) == expected


def test_host_build_has_the_values_of_the_chip() -> None:
    """Each CONFIG_ of the defaults that means something on a host has its value in sdkconfig.h."""
    host = mirrored()
    differing = {
        key: f"{value or 'not set'} on the chip, {host.get(key) or 'not set'} on the host"
        for key, value in wanted().items()
        if key not in EXCEPTIONS and host.get(key, "") != value
    }
    assert not differing


def test_exceptions_are_still_exceptions() -> None:
    """An exception names an option that the chip has and the host has not."""
    assert set(EXCEPTIONS) <= set(wanted()) - set(mirrored())


def test_choices_are_made_once() -> None:
    """The host's own list does not keep what the defaults chose something else for."""
    host = mirrored()
    assert [sum(option in host for option in choice) for choice in CHOICES] == [1] * len(CHOICES)
