# SPDX-License-Identifier: Apache-2.0
"""The virtual air: a link emulator between the rack's access point and its virtual boards."""
