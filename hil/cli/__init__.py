"""The ``hil`` command."""

from hil.cli.app import main

__all__ = ["main"]
