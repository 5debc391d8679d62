# SPDX-License-Identifier: Apache-2.0
"""What captures say of MQTT over TCP and TLS: segments, packets, symptoms, bundling, overhead.

tshark dissects; what is read here is its output.
"""
