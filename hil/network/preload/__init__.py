# SPDX-License-Identifier: Apache-2.0
"""Libraries that are loaded before a program's own (LD_PRELOAD) and stand between it and the C library."""
