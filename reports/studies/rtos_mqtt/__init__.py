# SPDX-License-Identifier: Apache-2.0
"""Beside our run of it: "RTOS Performance & Network Behavior" (J1w0n-H)."""
