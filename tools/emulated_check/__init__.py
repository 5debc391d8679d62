# SPDX-License-Identifier: Apache-2.0
"""`make emulated-check`: a chip's own image in an emulator, from flashing to faults and exact figures."""
