/* SPDX-License-Identifier: Apache-2.0 */
/* What differs from chip to chip is not there for a source that is compiled once for all of them. Where one
 * uses it the compiler stops, in #if and #ifdef too: name it in chip_sources (host/CMakeLists.txt). */
#pragma once

/* Every chip has these, and headers may mention them in macros that such a source does not use. */
#define CONFIG_IDF_TARGET differs_from_chip_to_chip_see_chip_sources()
#define CONFIG_IDF_FIRMWARE_CHIP_ID differs_from_chip_to_chip_see_chip_sources()
#define CONFIG_SOC_CPU_CORES_NUM differs_from_chip_to_chip_see_chip_sources()
#define CONFIG_FREERTOS_NUMBER_OF_CORES differs_from_chip_to_chip_see_chip_sources()
#define CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ differs_from_chip_to_chip_see_chip_sources()
#define CONFIG_ESP_IPC_TASK_STACK_SIZE differs_from_chip_to_chip_see_chip_sources()
#define CONFIG_BOOTLOADER_OFFSET_IN_FLASH differs_from_chip_to_chip_see_chip_sources()

/* Some chips have these, which differ from chip to chip too. */
#pragma GCC poison CONFIG_IDF_TARGET_ESP32 CONFIG_IDF_TARGET_ESP32S3 CONFIG_IDF_TARGET_ESP32C3
#pragma GCC poison CONFIG_IDF_TARGET_ARCH_XTENSA CONFIG_IDF_TARGET_ARCH_RISCV CONFIG_FREERTOS_UNICORE
#pragma GCC poison CONFIG_ESP_TASK_WDT_CHECK_IDLE_TASK_CPU1 CONFIG_ESP_INT_WDT_CHECK_CPU1
#pragma GCC poison CONFIG_ESP_CONSOLE_SECONDARY_NONE
#pragma GCC poison CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ_160 CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ_240
