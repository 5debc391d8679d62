# SPDX-License-Identifier: Apache-2.0
"""Reset causes of each chip as its ROM prints them, number and name, and whose each is.

Source: ESP-IDF v5.5.4, ``RESET_REASON`` in components/esp_rom/<chip>/include/<chip>/rom/rtc.h, and what
components/soc/<chip>/include/soc/reset_reasons.h has beyond it; and the names of a ROM that has others.
"""

from __future__ import annotations

from collections.abc import Mapping

CAUSES: Mapping[str, Mapping[str, str]] = {
    "esp32": {
        "firmware": (
            "0x3 SW_RESET, 0x4 OWDT_RESET, 0x7 TG0WDT_SYS_RESET, 0x8 TG1WDT_SYS_RESET, 0x9 "
            "RTCWDT_SYS_RESET, 0xb TGWDT_CPU_RESET, 0xc SW_CPU_RESET, 0xd RTCWDT_CPU_RESET, 0xe "
            "EXT_CPU_RESET, 0x10 RTCWDT_RTC_RESET"
        ),
        "rig": "0x1 POWERON_RESET, 0x6 SDIO_RESET, 0xa INTRUSION_RESET",
        "brownout": "0xf RTCWDT_BROWN_OUT_RESET",
        "wake-up": "0x5 DEEPSLEEP_RESET",
    },
    "esp32s2": {
        "firmware": (
            "0x3 RTC_SW_SYS_RESET, 0x3 RTC_SW_SYS_RST, 0x7 TG0WDT_SYS_RESET, 0x7 TG0WDT_SYS_RST, "
            "0x8 TG1WDT_SYS_RESET, 0x8 TG1WDT_SYS_RST, 0x9 RTCWDT_SYS_RESET, 0xb "
            "TG0WDT_CPU_RESET, 0xc RTC_SW_CPU_RESET, 0xc RTC_SW_CPU_RST, 0xd RTCWDT_CPU_RESET, "
            "0x10 RTCWDT_RTC_RESET, 0x10 RTCWDT_RTC_RST, 0x11 TG1WDT_CPU_RESET, 0x12 "
            "SUPER_WDT_RESET"
        ),
        "rig": (
            "0x1 POWERON, 0x1 POWERON_RESET, 0xa INTRUSION_RESET, 0x13 GLITCH_RTC_RESET, 0x14 EFUSE_RESET"
        ),
        "brownout": "0xf BROWN_OUT_RST, 0xf RTCWDT_BROWN_OUT_RESET",
        "wake-up": "0x5 DEEPSLEEP_RESET, 0x5 DSLEEP",
    },
    "esp32s3": {
        "firmware": (
            "0x3 RTC_SW_SYS_RESET, 0x3 RTC_SW_SYS_RST, 0x7 TG0WDT_SYS_RESET, 0x7 TG0WDT_SYS_RST, "
            "0x8 TG1WDT_SYS_RESET, 0x8 TG1WDT_SYS_RST, 0x9 RTCWDT_SYS_RESET, 0xb "
            "TG0WDT_CPU_RESET, 0xc RTC_SW_CPU_RESET, 0xc RTC_SW_CPU_RST, 0xd RTCWDT_CPU_RESET, "
            "0x10 RTCWDT_RTC_RESET, 0x10 RTCWDT_RTC_RST, 0x11 TG1WDT_CPU_RESET, 0x12 "
            "SUPER_WDT_RESET"
        ),
        "rig": (
            "0x1 POWERON, 0x1 POWERON_RESET, 0xa INTRUSION_RESET, 0x13 GLITCH_RTC_RESET, 0x14 "
            "EFUSE_RESET, 0x15 USB_UART_CHIP_RESET, 0x16 USB_JTAG_CHIP_RESET, 0x17 "
            "POWER_GLITCH_RESET"
        ),
        "brownout": "0xf BROWN_OUT_RST, 0xf RTCWDT_BROWN_OUT_RESET",
        "wake-up": "0x5 DEEPSLEEP_RESET, 0x5 DSLEEP",
    },
    "esp32c2": {
        "firmware": (
            "0x3 RTC_SW_SYS_RESET, 0x7 TG0WDT_SYS_RESET, 0x7 TG0WDT_SYS_RST, 0x9 "
            "RTCWDT_SYS_RESET, 0xb TG0WDT_CPU_RESET, 0xc RTC_SW_CPU_RESET, 0xc RTC_SW_CPU_RST, "
            "0xd RTCWDT_CPU_RESET, 0x10 RTCWDT_RTC_RESET, 0x10 RTCWDT_RTC_RST, 0x12 "
            "SUPER_WDT_RESET"
        ),
        "rig": (
            "0x1 POWERON, 0x1 POWERON_RESET, 0xa INTRUSION_RESET, 0x13 GLITCH_RTC_RESET, 0x14 "
            "EFUSE_RESET, 0x18 JTAG_RESET"
        ),
        "brownout": "0xf BROWNOUT_RST, 0xf RTCWDT_BROWN_OUT_RESET",
        "wake-up": "0x5 DEEPSLEEP_RESET, 0x5 DSLEEP",
    },
    "esp32c3": {
        "firmware": (
            "0x3 RTC_SW_SYS_RESET, 0x3 RTC_SW_SYS_RST, 0x7 TG0WDT_SYS_RESET, 0x7 TG0WDT_SYS_RST, "
            "0x8 TG1WDT_SYS_RESET, 0x8 TG1WDT_SYS_RST, 0x9 RTCWDT_SYS_RESET, 0xb "
            "TG0WDT_CPU_RESET, 0xc RTC_SW_CPU_RESET, 0xc RTC_SW_CPU_RST, 0xd RTCWDT_CPU_RESET, "
            "0x10 RTCWDT_RTC_RESET, 0x10 RTCWDT_RTC_RST, 0x11 TG1WDT_CPU_RESET, 0x12 "
            "SUPER_WDT_RESET"
        ),
        "rig": (
            "0x1 POWERON, 0x1 POWERON_RESET, 0xa INTRUSION_RESET, 0x13 GLITCH_RTC_RESET, 0x14 "
            "EFUSE_RESET, 0x15 USB_UART_CHIP_RESET, 0x16 USB_JTAG_CHIP_RESET, 0x17 "
            "POWER_GLITCH_RESET"
        ),
        "brownout": "0xf BROWNOUT_RST, 0xf RTCWDT_BROWN_OUT_RESET",
        "wake-up": "0x5 DEEPSLEEP_RESET, 0x5 DSLEEP",
    },
    "esp32c5": {
        "firmware": (
            "0x3 LP_SW_HPSYS, 0x3 RTC_SW_SYS_RESET, 0x7 TG0WDT_SYS_RESET, 0x8 TG1WDT_SYS_RESET, "
            "0x9 RTCWDT_SYS_RESET, 0xb TG0WDT_CPU_RESET, 0xc RTC_SW_CPU_RESET, 0xc SW_CPU, 0xd "
            "RTCWDT_CPU_RESET, 0x10 RTCWDT_RTC_RESET, 0x11 TG1WDT_CPU_RESET, 0x12 "
            "SUPER_WDT_RESET, 0x1a CPU0_LOCKUP"
        ),
        "rig": (
            "0x1 POWERON, 0x1 POWERON_RESET, 0x14 EFUSE_RESET, 0x15 USB_UART_CHIP_RESET, 0x15 "
            "USB_UART_HPSYS, 0x16 USB_JTAG_CHIP_RESET, 0x18 JTAG_RESET, 0x19 CORE_PWR_GLITCH"
        ),
        "brownout": "0xf LP_BOD_SYS, 0xf RTCWDT_BROWN_OUT_RESET",
        "wake-up": "0x5 DEEPSLEEP_RESET, 0x5 SLEEP_WAKEUP",
    },
    "esp32c6": {
        "firmware": (
            "0x3 LP_SW_HPSYS, 0x3 RTC_SW_SYS_RESET, 0x7 TG0WDT_SYS_RESET, 0x7 TG0_WDT_HPSYS, 0x8 "
            "TG1WDT_SYS_RESET, 0x8 TG1_WDT_HPSYS, 0x9 LP_WDT_HPSYS, 0x9 RTCWDT_SYS_RESET, 0xb "
            "TG0WDT_CPU_RESET, 0xb TG0_WDT_CPU, 0xc RTC_SW_CPU_RESET, 0xc SW_CPU, 0xd LP_WDT_CPU, "
            "0xd RTCWDT_CPU_RESET, 0x10 LP_WDT_SYS, 0x10 RTCWDT_RTC_RESET, 0x11 TG1WDT_CPU_RESET, "
            "0x11 TG1_WDT_CPU, 0x12 LP_SWDT_SYS, 0x12 SUPER_WDT_RESET"
        ),
        "rig": (
            "0x1 POWERON, 0x1 POWERON_RESET, 0x6 SDIO_HPSYS, 0x6 SDIO_RESET, 0x14 EFUSE_HPSYS, "
            "0x14 EFUSE_RESET, 0x15 USB_UART_CHIP_RESET, 0x15 USB_UART_HPSYS, 0x16 "
            "USB_JTAG_CHIP_RESET, 0x16 USB_JTAG_HPSYS, 0x18 JTAG_CPU, 0x18 JTAG_RESET"
        ),
        "brownout": "0xf LP_BOD_SYS, 0xf RTCWDT_BROWN_OUT_RESET",
        "wake-up": "0x5 DEEPSLEEP_RESET, 0x5 SLEEP_WAKEUP",
    },
    "esp32h2": {
        "firmware": (
            "0x3 LP_SW_HPSYS, 0x3 RTC_SW_SYS_RESET, 0x7 TG0WDT_SYS_RESET, 0x8 TG1WDT_SYS_RESET, "
            "0x9 RTCWDT_SYS_RESET, 0xb TG0WDT_CPU_RESET, 0xc RTC_SW_CPU_RESET, 0xc SW_CPU, 0xd "
            "RTCWDT_CPU_RESET, 0x10 RTCWDT_RTC_RESET, 0x11 TG1WDT_CPU_RESET, 0x12 SUPER_WDT_RESET"
        ),
        "rig": (
            "0x1 POWERON, 0x1 POWERON_RESET, 0x14 EFUSE_RESET, 0x15 USB_UART_CHIP_RESET, 0x15 "
            "USB_UART_HPSYS, 0x16 USB_JTAG_CHIP_RESET, 0x17 POWER_GLITCH_RESET, 0x18 "
            "JTAG_CPU_RESET"
        ),
        "brownout": "0xf LP_BOD_SYS, 0xf RTCWDT_BROWN_OUT_RESET",
        "wake-up": "0x5 DEEPSLEEP_RESET, 0x5 SLEEP_WAKEUP",
    },
    "esp32p4": {
        "firmware": (
            "0x3 SW_SYS_RESET, 0x7 HP_SYS_HP_WDT_RESET, 0x9 HP_SYS_LP_WDT_RESET, 0xb "
            "HP_CORE_HP_WDT_RESET, 0xc SW_CPU_RESET, 0xd HP_CORE_LP_WDT_RESET, 0x10 "
            "CHIP_LP_WDT_RESET, 0x10 LP_WDT_SYS, 0x12 SUPER_WDT_RESET, 0x1a CPU_LOCKUP_RESET"
        ),
        "rig": (
            "0x1 POWERON, 0x1 POWERON_RESET, 0x13 GLITCH_RTC_RESET, 0x14 EFUSE_CRC_ERR_RESET, "
            "0x16 CHIP_USB_JTAG_RESET, 0x17 CHIP_USB_UART_RESET, 0x18 JTAG_RESET, 0x19 "
            "PWR_GLITCH, 0x1b PSDET, 0x1b SYS_PSDET"
        ),
        "brownout": "0xf BROWN_OUT_RESET, 0xf LP_BOD_SYS",
        "wake-up": "0x5 DSLEEP, 0x5 PMU_SYS_PWR_DOWN_RESET",
    },
}
