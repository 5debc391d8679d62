# SPDX-License-Identifier: Apache-2.0
"""What captures say of MQTT over TCP and TLS: segments, packets, symptoms, bundling, overhead.

tshark dissects; what is read here is its output.
"""

from hil.network.dissect.bundling import Bundling, Burst, bundling_of, publishes_in_gap
from hil.network.dissect.flows import Attempt, attempts_of
from hil.network.dissect.overhead import Overhead, overhead_of
from hil.network.dissect.segments import MqttPorts, Pdu, Segment, read_segments
from hil.network.dissect.symptoms import SYMPTOMS, Symptom, count_symptoms

__all__ = [
    "SYMPTOMS",
    "Attempt",
    "Bundling",
    "Burst",
    "MqttPorts",
    "Overhead",
    "Pdu",
    "Segment",
    "Symptom",
    "attempts_of",
    "bundling_of",
    "count_symptoms",
    "overhead_of",
    "publishes_in_gap",
    "read_segments",
]
