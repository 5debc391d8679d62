# SPDX-License-Identifier: Apache-2.0
"""Beside our run of it: "Measuring the Performance of FreeRTOS on ESP32 Multi-Core" (Arm and others)."""
