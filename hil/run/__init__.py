# SPDX-License-Identifier: Apache-2.0
"""The engine of a run: plan, boot loop, rounds, recording; and a bisection, which is many runs."""
