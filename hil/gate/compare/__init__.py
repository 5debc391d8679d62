# SPDX-License-Identifier: Apache-2.0
"""Candidate against base, board by board and boot by boot: what has changed, and how surely."""
