"""A virtual development board with an ESP32, ESP32-S3 or ESP32-C3 behind RFC 2217, one process each.

the board    machine.py  what the board is doing         timers.py  what it does later, unless reset
             config.py  who it is                        reset.py  DTR and RTS to EN and IO0
             resets.py  why the chip started             flash.py  NOR flash in a file
the cable    uart.py  RFC 2217 server, one client        cable.py  one wire each way, chip's and host's rates
             line.py  a wire: baud rates and pacing
the chip     chip.py  what a chip is                     chips.py, esp32*.py  the chips
             common.py  what the newer ones share        architecture.py  exceptions and registers of a CPU
             detection.py  how a client tells chips apart
the loader   loader.py  ROM serial loader and stub       flash_commands.py  its commands that touch flash
             registers.py  registers it reads, writes    loader_link.py  what these parts share
             slip.py  framing
the program  boot.py  ROM and second stage, their logs   otadata.py  which slot boots
             app.py  the process of the image's program  running.py  that process as the board's application
             panic.py  what a crash prints
the faults   faults.py  which there are                  injection.py  switching them on and off
             control.py, client.py  the control socket and its client
"""
