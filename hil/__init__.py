# SPDX-License-Identifier: Apache-2.0
"""Hardware-in-the-loop performance testing of ESP32 firmware: rig, measurement, gate, virtual rack."""

__version__ = "0.1.0"
