# SPDX-License-Identifier: Apache-2.0
"""A virtual development board with an ESP32, ESP32-S3 or ESP32-C3 behind RFC 2217, one process each.

the board    machine.py  what the board is doing, and does later, unless reset
             config.py  who it is                        flash.py  NOR flash in a file
             reset.py  DTR and RTS to EN and IO0, and why the chip started
the cable    uart.py  RFC 2217 server, one client        cable.py  a wire each way, its rates and pacing
the chip     chip.py  what a chip is, its CPU, how a client tells it apart
             chips.py  the chips
the loader   loader.py  ROM serial loader and stub       flash_commands.py  its commands that touch flash
             slip.py  framing
the program  boot.py  ROM and second stage, their logs, which slot boots
             running.py  the process of the image's program as the board's application
             panic.py  what a crash prints
the faults   faults.py  which there are                  control.py  the control socket, which switches them
             client.py  its client
"""
