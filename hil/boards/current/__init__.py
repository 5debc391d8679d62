# SPDX-License-Identifier: Apache-2.0
"""What a board draws while a case is measured."""

from hil.boards.current.sampling import Meters, Sampling, check_meter

__all__ = ["Meters", "Sampling", "check_meter"]
