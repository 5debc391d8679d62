"""Beside our run of it: "HTTP GET round trips over an MQTT gateway" (Elkadi)."""
