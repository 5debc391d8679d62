"""Scheduler traces in reports: one line a trace, and where its files lie."""
