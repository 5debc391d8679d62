# SPDX-License-Identifier: Apache-2.0
"""A fixed programme for a rack that nobody has seen yet, and the one file that is sent of it."""
