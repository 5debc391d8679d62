# SPDX-License-Identifier: Apache-2.0
"""``make bench-gate``: the gate and nine other rules judge the same simulated pull requests."""
