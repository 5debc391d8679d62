# SPDX-License-Identifier: Apache-2.0
"""A rack's health: what each run says of its boards, and what follows from many runs."""
