"""What every room stands on: errors, YAML files, units, locks, git."""
