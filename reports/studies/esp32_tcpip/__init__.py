# SPDX-License-Identifier: Apache-2.0
"""Beside our run of it: "Performance of the ESP32's TCP/IP stack" (Hogeweij)."""
