# SPDX-License-Identifier: Apache-2.0
"""Reset causes of all chips as their ROMs print them: number, whose each is, and its names.

Source: ESP-IDF v5.5.4, ``RESET_REASON`` in components/esp_rom/<chip>/include/<chip>/rom/rtc.h, and what
components/soc/<chip>/include/soc/reset_reasons.h has beyond it; and the names of a ROM that has others.
"""

from __future__ import annotations

CHIPS = ("esp32", "esp32s2", "esp32s3", "esp32c2", "esp32c3", "esp32c5", "esp32c6", "esp32h2", "esp32p4")
_TABLE = """\
0x1 rig POWERON_RESET POWERON
0x3 firmware SW_RESET RTC_SW_SYS_RESET RTC_SW_SYS_RST LP_SW_HPSYS SW_SYS_RESET
0x4 firmware OWDT_RESET
0x5 wake-up DEEPSLEEP_RESET DSLEEP SLEEP_WAKEUP PMU_SYS_PWR_DOWN_RESET
0x6 rig SDIO_RESET SDIO_HPSYS
0x7 firmware TG0WDT_SYS_RESET TG0WDT_SYS_RST TG0_WDT_HPSYS HP_SYS_HP_WDT_RESET
0x8 firmware TG1WDT_SYS_RESET TG1WDT_SYS_RST TG1_WDT_HPSYS
0x9 firmware RTCWDT_SYS_RESET LP_WDT_HPSYS HP_SYS_LP_WDT_RESET
0xa rig INTRUSION_RESET
0xb firmware TGWDT_CPU_RESET TG0WDT_CPU_RESET TG0_WDT_CPU HP_CORE_HP_WDT_RESET
0xc firmware SW_CPU_RESET RTC_SW_CPU_RESET RTC_SW_CPU_RST SW_CPU
0xd firmware RTCWDT_CPU_RESET LP_WDT_CPU HP_CORE_LP_WDT_RESET
0xe firmware EXT_CPU_RESET
0xf brownout RTCWDT_BROWN_OUT_RESET BROWN_OUT_RST BROWNOUT_RST LP_BOD_SYS BROWN_OUT_RESET
0x10 firmware RTCWDT_RTC_RESET RTCWDT_RTC_RST LP_WDT_SYS CHIP_LP_WDT_RESET
0x11 firmware TG1WDT_CPU_RESET TG1_WDT_CPU
0x12 firmware SUPER_WDT_RESET LP_SWDT_SYS
0x13 rig GLITCH_RTC_RESET
0x14 rig EFUSE_RESET EFUSE_HPSYS EFUSE_CRC_ERR_RESET
0x15 rig USB_UART_CHIP_RESET USB_UART_HPSYS
0x16 rig USB_JTAG_CHIP_RESET USB_JTAG_HPSYS CHIP_USB_JTAG_RESET
0x17 rig POWER_GLITCH_RESET CHIP_USB_UART_RESET
0x18 rig JTAG_RESET JTAG_CPU JTAG_CPU_RESET
0x19 rig CORE_PWR_GLITCH PWR_GLITCH
0x1a firmware CPU0_LOCKUP CPU_LOCKUP_RESET
0x1b rig PSDET SYS_PSDET
"""
CAUSES = [
    (number, owner, name) for number, owner, *names in map(str.split, _TABLE.splitlines()) for name in names
]
