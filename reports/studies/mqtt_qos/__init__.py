# SPDX-License-Identifier: Apache-2.0
"""Beside our run of it: "QoS Eigenschaften von MQTT" (Stolz and Schuhmacher)."""
