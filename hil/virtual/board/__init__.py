"""A virtual ESP32 development board behind RFC 2217, one process each.

uart.py      RFC 2217 server, one client at a time       line.py     baud rates and pacing on the wire
reset.py     DTR and RTS to EN and IO0                   machine.py  what the board is doing
loader.py    ROM serial loader and flasher stub          boot.py     ROM and second stage, with their logs
app.py       the host program that the image carries     panic.py    what a crash prints
flash.py     NOR flash in a file                         faults.py, injection.py  the faults
chip.py      what a chip is; esp32.py is one             control.py, client.py    the control socket
"""
