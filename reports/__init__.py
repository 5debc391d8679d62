"""Reports: each renders records and verdicts from disk; none decides anything."""
