# SPDX-License-Identifier: Apache-2.0
"""`make emulated-check`: a chip's own image in QEMU, from flashing to faults and exact figures."""
