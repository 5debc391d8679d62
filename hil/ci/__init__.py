# SPDX-License-Identifier: Apache-2.0
"""What the GitHub workflows ask of `hil ci`: what to measure, what a leg left, one verdict on all of it."""
