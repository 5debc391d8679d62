# SPDX-License-Identifier: Apache-2.0
"""The ``hil`` command."""

from hil.cli.app import main

__all__ = ["main"]
