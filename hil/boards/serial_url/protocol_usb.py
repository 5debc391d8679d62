# SPDX-License-Identifier: Apache-2.0
"""``usb://1-1.2?serial=…&interface=0``: the serial port that a place on USB, or a serial number, has now.

It is looked for whenever it is opened, again too: esptool opens a port anew where a chip with USB of its own
vanished at its reset, and a name that it had before may be another board's. Opening waits until it is back.
``port`` is the device file then, by which esptool sees which interface it is and how that is reset: a USB
Serial/JTAG (303a:1001) and USB-OTG otherwise than a converter with DTR and RTS.
"""

from __future__ import annotations

import contextlib
import errno
import os
import termios
import time
from collections.abc import Callable
from typing import Any

import serial

from hil.base.errors import ConfigError, HilError
from hil.boards.serial_url.usb import FoundPort, UsbPort, from_url

# pyserial's type stubs leave out the protected members that a handler builds on.
# mypy: disable-error-code="attr-defined,misc,no-any-return,arg-type"

BACK_DEADLINE_S = 10.0  # a chip is enumerated again in less than one, a hub after a cut of its supply in some
_POLL_S = 0.05
# Not there, not there any more, or not given to this user's group yet by udev.
_MAY_PASS = (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.EIO, errno.EACCES)


class Serial(serial.Serial):
    """The port; see pyserial's ``serial.Serial`` for what is not said here."""

    _url = ""
    _found: FoundPort | None = None
    _goes_on: Callable[[], bool] = staticmethod(lambda: True)

    @property
    def port(self) -> str | None:
        return self._port

    @port.setter
    def port(self, port: str | None) -> None:
        if port:
            from_url(port)
            self._url = port
        serial.Serial.port.fset(self, port)

    def open(self) -> None:
        """Find the port and open it, at the latest when it is there again. Raises SerialException."""
        deadline = time.monotonic() + BACK_DEADLINE_S
        while problem := self._try_to_open(from_url(self._url)):
            if time.monotonic() >= deadline or not self._goes_on():
                raise serial.SerialException(f"could not open port {self._url}: {problem}")
            time.sleep(_POLL_S)

    def _try_to_open(self, wanted: UsbPort) -> str:
        """Return what is in the way and may pass, "" where the port is open. Raises SerialException."""
        try:
            self._found = wanted.find()
            self._port = self.name = self.portstr = str(self._found.file)
            super().open()
        except ConfigError as error:
            raise serial.SerialException(f"could not open port {self._url}: {error}") from error
        except HilError as error:
            return str(error)
        except OSError as error:  # SerialException is one
            if error.errno not in _MAY_PASS:
                raise
            return str(error)
        return ""

    def is_back(self) -> bool:
        """Wait for a chip that is the USB device itself, and vanished; return whether it is there again.

        The port stays open meanwhile, in place of the one that was lost.
        """
        if self._found is None or not self._found.device.is_native:
            return False
        fresh = Serial(baudrate=self.baudrate, timeout=self.timeout, exclusive=self.exclusive)
        fresh.port = self._url
        fresh._goes_on = lambda: self.is_open
        try:
            fresh.open()
            if not self.is_open:
                return False
            os.dup2(fresh.fd, self.fd)
            self._found = fresh._found
            self._port = self.name = self.portstr = fresh._port
        except (OSError, TypeError):  # it is closed by another thread
            return False
        finally:
            with contextlib.suppress(OSError):
                fresh.close()
        return True

    def _reconfigure_port(self, *arguments: Any, **options: Any) -> None:
        """Set rate and timeouts; a chip that vanished at its reset is waited for."""
        try:
            super()._reconfigure_port(*arguments, **options)
        except (OSError, termios.error):
            if not self.is_open or not self.is_back():
                raise
