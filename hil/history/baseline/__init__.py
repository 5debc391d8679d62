# SPDX-License-Identifier: Apache-2.0
"""Baselines: collect sessions, show what they are worth, accept them as an epoch."""
