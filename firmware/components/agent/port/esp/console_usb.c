/* SPDX-License-Identifier: Apache-2.0 */
/* Console on the chip's own USB, as a serial port. What nobody reads is dropped: without a host on the cable
 * the agent would wait for one, and hold whoever has something to tell. */
#include <stdio.h>

#include "driver/usb_serial_jtag.h"
#include "port/port.h"

enum {
    RX_BUFFER_BYTES = 4096,
    TX_BUFFER_BYTES = 4096, /* the longest record at once */
    WRITE_TIMEOUT_MS = 500,
    DRAIN_TIMEOUT_MS = 2000,
};

esp_err_t port_console_init(void) {
    usb_serial_jtag_driver_config_t config = {.rx_buffer_size = RX_BUFFER_BYTES,
                                              .tx_buffer_size = TX_BUFFER_BYTES};
    return usb_serial_jtag_is_driver_installed() ? ESP_OK : usb_serial_jtag_driver_install(&config);
}

size_t port_console_read(char *buffer, size_t size) {
    int count = usb_serial_jtag_read_bytes(buffer, (uint32_t)size, portMAX_DELAY);
    return count > 0 ? (size_t)count : 0;
}

void port_console_write(const char *bytes, size_t length) {
    fflush(stdout);
    while (length > 0) {
        int count = usb_serial_jtag_write_bytes(bytes, length, pdMS_TO_TICKS(WRITE_TIMEOUT_MS));
        if (count <= 0) {
            return;
        }
        bytes += count;
        length -= (size_t)count;
    }
}

void port_console_drain(void) {
    fflush(stdout);
    usb_serial_jtag_wait_tx_done(pdMS_TO_TICKS(DRAIN_TIMEOUT_MS));
}
