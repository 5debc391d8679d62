# SPDX-License-Identifier: Apache-2.0
"""Boards of a farm: exported to a labgrid coordinator, and leased from it."""
