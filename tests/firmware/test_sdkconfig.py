# SPDX-License-Identifier: Apache-2.0
"""The host build is configured as the chip is: sdkconfig.h mirrors the sdkconfig.defaults files."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from hil.base.chips import CHIPS, MODELLED
from hil.boards.firmware.build_folder import DEFAULT_TICK_HZ, TICKS_HZ, Image

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
IDF = FIRMWARE / "host" / "idf"
EVERY_CHIP = FIRMWARE / "host" / "every_chip"
TARGETS = sorted(path.name for path in (IDF / "target").iterdir())

# Not in sdkconfig.h, and why.
EXCEPTIONS: Mapping[str, str] = {
    "CONFIG_BOOTLOADER_LOG_LEVEL_WARN": "the host build has no boot loader",
    "CONFIG_ETH_OPENETH_DMA_RX_BUFFER_NUM": "the host build has no cable",
    "CONFIG_ETH_SPI_ETHERNET_W5500": "the host build has no cable",
    "CONFIG_ETH_USE_OPENETH": "the host build has no cable",
    "CONFIG_UART_ISR_IN_IRAM": "the host build has no flash whose writes stop an interrupt",
    "CONFIG_FREERTOS_CHECK_STACKOVERFLOW_CANARY": "a guard page behind each stack finds an overflow",
}
# Of each Kconfig choice exactly one is set.
CHOICES = (
    ("CONFIG_ESP_CONSOLE_UART_DEFAULT", "CONFIG_ESP_CONSOLE_UART_CUSTOM", "CONFIG_ESP_CONSOLE_NONE"),
    ("CONFIG_ESP_CONSOLE_UART_CUSTOM_NUM_0", "CONFIG_ESP_CONSOLE_UART_CUSTOM_NUM_1"),
    ("CONFIG_FREERTOS_RUN_TIME_COUNTER_TYPE_U64", "CONFIG_FREERTOS_RUN_TIME_COUNTER_TYPE_U32"),
    ("CONFIG_MQTT_USE_CORE_0", "CONFIG_MQTT_USE_CORE_1"),
    ("CONFIG_COMPILER_OPTIMIZATION_PERF", "CONFIG_COMPILER_OPTIMIZATION_SIZE"),
    ("CONFIG_PARTITION_TABLE_CUSTOM", "CONFIG_PARTITION_TABLE_SINGLE_APP"),
)


def read_defaults(text: str) -> dict[str, str]:
    """Return what the lines of an sdkconfig.defaults come to in sdkconfig.h: y is 1, n is no macro at all."""
    found = re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE)
    return {key: {"y": "1", "n": ""}.get(value, value) for key, value in found}


def wanted(target: str) -> dict[str, str]:
    paths = (FIRMWARE / "sdkconfig.defaults", FIRMWARE / f"sdkconfig.defaults.{target}")
    return {key: value for path in paths for key, value in read_defaults(path.read_text("utf-8")).items()}


def mirrored(target: str) -> dict[str, str]:
    paths = (IDF / "target" / target / "sdkconfig_target.h", IDF / "include" / "sdkconfig.h")
    text = "".join(path.read_text("utf-8") for path in paths)
    found: list[tuple[str, str]] = re.findall(r"^#define (CONFIG_\w+) (.+)$", text, re.MULTILINE)
    assert len(found) == len(dict(found)), "a value is defined both for the target and for all"
    return dict(found)


def test_values_read_as_kconfig_means_them() -> None:
    """y, n, numbers, hexadecimal numbers and texts."""
    text = '# CONFIG_X=y\nCONFIG_A=y\nCONFIG_B=n\nCONFIG_C=12\nCONFIG_D=0x10\nCONFIG_E="a b"\n'
    expected = {"CONFIG_A": "1", "CONFIG_B": "", "CONFIG_C": "12", "CONFIG_D": "0x10", "CONFIG_E": '"a b"'}
    assert read_defaults(text) == expected


@pytest.mark.parametrize("target", TARGETS)
def test_host_build_has_the_values_of_the_chip(target: str) -> None:
    """Each CONFIG_ of the defaults that means something on a host has its value in sdkconfig.h."""
    host = mirrored(target)
    differing = {
        key: f"{value or 'not set'} on the chip, {host.get(key) or 'not set'} on the host"
        for key, value in wanted(target).items()
        if key not in EXCEPTIONS and host.get(key, "") != value
    }
    assert not differing


def test_every_chip_of_the_project_has_its_values() -> None:
    """Each chip has defaults of its own, and the host build knows those that a virtual board can be."""
    defaults = {path.suffix[1:] for path in FIRMWARE.glob("sdkconfig.defaults.*")} - {"linux"}
    assert defaults == set(CHIPS)
    assert set(TARGETS) == set(MODELLED)
    for target in TARGETS:
        assert mirrored(target)["CONFIG_IDF_TARGET"] == f'"{target}"'


def chip_names(target: str) -> set[str]:
    text = (IDF / "target" / target / "sdkconfig_target.h").read_text("utf-8")
    return set(re.findall(r"^#define (CONFIG_\w+)", text, re.MULTILINE))


def test_what_is_compiled_once_for_all_chips_has_nothing_of_a_chip() -> None:
    """every_chip/ has each name that a chip defines: one of all chips cannot be used, others not be named."""
    text = (EVERY_CHIP / "sdkconfig_target.h").read_text("utf-8")
    by_chip = [chip_names(target) for target in TARGETS]
    defined = set(re.findall(r"^#define (CONFIG_\w+) differs_from_chip_to_chip", text, re.MULTILINE))
    forbidden = re.findall(r"^#pragma GCC poison (.+)$", text, re.MULTILINE)
    assert defined == set.intersection(*by_chip)
    assert set(" ".join(forbidden).split()) == set.union(*by_chip) - defined


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ("int clock(void) { return CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ; }", "differs_from_chip_to_chip"),
        ("int cores(void) { return portNUM_PROCESSORS; }", "differs_from_chip_to_chip"),
        ("#if CONFIG_SOC_CPU_CORES_NUM > 1\n#endif", "expansion of macro .CONFIG_SOC_CPU_CORES_NUM"),
        ("#if CONFIG_IDF_TARGET_ESP32C3\n#endif", "poisoned"),
        ("#ifdef CONFIG_FREERTOS_UNICORE\n#endif", "poisoned"),
        ("#if defined(CONFIG_IDF_TARGET_ARCH_RISCV)\n#endif", "poisoned"),
    ],
)
def test_a_use_of_the_chip_does_not_compile_once_for_all(use: str, said: str) -> None:
    """A source that is not in chip_sources and uses what differs from chip to chip stops the build."""
    folders = [f"-I{folder}" for folder in (IDF / "include", EVERY_CHIP)]
    argv = ["cc", "-fsyntax-only", "-Wall", "-Werror", *folders, "-xc", "-"]
    source = f'#include "freertos/FreeRTOS.h"\n{use}\n'
    done = subprocess.run(argv, input=source, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode != 0
    assert re.search(said, done.stderr)


def test_each_other_tick_has_its_overlay() -> None:
    """Each tick that is built but the default one has an overlay, which sets the tick and nothing else."""
    others = [Image("esp32", tick_hz) for tick_hz in TICKS_HZ if tick_hz != DEFAULT_TICK_HZ]
    found = {path.name: read_defaults(path.read_text("utf-8")) for path in FIRMWARE.glob("sdkconfig.tick*")}
    assert found == {image.overlay: {"CONFIG_FREERTOS_HZ": str(image.tick_hz)} for image in others}
    assert wanted("esp32")["CONFIG_FREERTOS_HZ"] == str(DEFAULT_TICK_HZ)


@pytest.mark.parametrize(("options", "tick_hz"), [([], 1000), (["-DCONFIG_FREERTOS_HZ=100"], 100)])
def test_ticks_and_milliseconds_follow_the_configuration(options: list[str], tick_hz: int) -> None:
    """The rate, a tick's length and conversions of the host's headers, by the compiler."""
    source = f"""
    #include "freertos/FreeRTOS.h"
    _Static_assert(configTICK_RATE_HZ == {tick_hz} && portTICK_PERIOD_MS == {1000 // tick_hz}, "tick");
    _Static_assert(pdMS_TO_TICKS(250) == {250 * tick_hz // 1000}, "ticks");
    _Static_assert(pdTICKS_TO_MS(20) == {20000 // tick_hz}, "ms");
    """
    folders = [f"-I{folder}" for folder in (IDF / "include", IDF / "target" / "esp32")]
    argv = ["cc", "-fsyntax-only", *folders, *options, "-xc", "-"]
    done = subprocess.run(argv, input=source, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_exceptions_are_still_exceptions(target: str) -> None:
    """An exception names an option that the chip has and the host has not."""
    assert set(EXCEPTIONS) <= set(wanted(target)) - set(mirrored(target))


@pytest.mark.parametrize("target", TARGETS)
def test_choices_are_made_once(target: str) -> None:
    """The host's own list does not keep what the defaults chose something else for."""
    host = mirrored(target)
    assert [sum(option in host for option in choice) for choice in CHOICES] == [1] * len(CHOICES)
