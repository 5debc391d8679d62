# SPDX-License-Identifier: Apache-2.0
"""Boards and their rack: rack file, lease, firmware, flash, power, serial line, health."""
