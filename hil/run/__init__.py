# SPDX-License-Identifier: Apache-2.0
"""The engine of a run: plan, boot loop, rounds, recording."""
