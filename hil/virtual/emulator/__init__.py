# SPDX-License-Identifier: Apache-2.0
"""An emulated board: the image that a chip gets, in an emulator, behind RFC 2217, one process each.

the board    machine.py  power, reset and straps around an emulator    faults.py  which it can have
emulators    driver.py  the protocol of each    drivers.py  which there are, and what they can do
             process.py, console.py  what all are: a process, and a UART as FIFOs
QEMU         qemu.py  driver and sealed runs    qemu_chips.py  its machines    qmp.py  its control protocol
esp-emu      esp_emu.py

Cable, reset circuit, RFC 2217 server and control socket are the virtual board's. What is outside this folder
names no emulator.
"""
