"""Beside our run of it: "QoS Eigenschaften von MQTT" (Stolz and Schuhmacher)."""
