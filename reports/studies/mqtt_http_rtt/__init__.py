# SPDX-License-Identifier: Apache-2.0
"""Beside our run of it: "HTTP GET round trips over an MQTT gateway" (Elkadi)."""
