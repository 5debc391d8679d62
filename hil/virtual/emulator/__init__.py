# SPDX-License-Identifier: Apache-2.0
"""An emulated board: the image that a chip gets, in Espressif's QEMU, behind RFC 2217, one process each.

the board    machine.py  power, reset and straps around a process of QEMU      faults.py  which it can have
QEMU         qemu.py  where it is, its command line, a sealed run              chips.py  the chips it emulates
             qmp.py  its control protocol                                      console.py  the chip's UART

Cable, reset circuit, RFC 2217 server and control socket are the virtual board's.
"""
