/* SPDX-License-Identifier: Apache-2.0 */
/* Console on the chip's UART, through the UART driver so that reading blocks instead of polling. */
#include <stdio.h>
#include <unistd.h>

#include "driver/uart.h"
#include "driver/uart_vfs.h"
#include "esp_intr_alloc.h"
#include "port/port.h"
#include "sdkconfig.h"

#if CONFIG_ESP_CONSOLE_UART_NUM < 0
#error                                                                                                       \
    "the program's console is no UART: choose CONFIG_HIL_CONSOLE_USB_SERIAL_JTAG, or a UART for the console"
#endif

#if !CONFIG_UART_ISR_IN_IRAM
#error "the UART's own FIFO is full after 1.4 ms, a flash write takes longer: set CONFIG_UART_ISR_IN_IRAM=y"
#endif

enum {
    RX_BUFFER_BYTES = 4096, /* 44 ms at 921600 baud: outlasts a flash write with the cache off */
    TX_BUFFER_BYTES = 4096,
    DRAIN_TIMEOUT_MS = 2000,
};

esp_err_t port_console_init(void) {
    fflush(stdout);
    fsync(fileno(stdout));
    if (uart_is_driver_installed(CONFIG_ESP_CONSOLE_UART_NUM)) { /* by the program, for its log */
        return ESP_OK;
    }
    esp_err_t err = uart_driver_install(CONFIG_ESP_CONSOLE_UART_NUM, RX_BUFFER_BYTES, TX_BUFFER_BYTES, 0,
                                        NULL, ESP_INTR_FLAG_IRAM);
    if (err != ESP_OK) {
        return err;
    }
    uart_vfs_dev_use_driver(CONFIG_ESP_CONSOLE_UART_NUM); /* log output takes the same way as records */
    setvbuf(stdout, NULL, _IOLBF, 0);
    return ESP_OK;
}

size_t port_console_read(char *buffer, size_t size) {
    int count = uart_read_bytes(CONFIG_ESP_CONSOLE_UART_NUM, buffer, 1, portMAX_DELAY);
    size_t waiting = 0;
    if (count == 1 && uart_get_buffered_data_len(CONFIG_ESP_CONSOLE_UART_NUM, &waiting) == ESP_OK &&
        waiting > 0) {
        size_t wanted = waiting < size - 1 ? waiting : size - 1;
        int more = uart_read_bytes(CONFIG_ESP_CONSOLE_UART_NUM, buffer + 1, (uint32_t)wanted, 0);
        count += more > 0 ? more : 0;
    }
    return count > 0 ? (size_t)count : 0;
}

void port_console_write(const char *bytes, size_t length) {
    /* Past stdio and the VFS, which hand the driver one character at a time. The driver keeps it whole. */
    fflush(stdout);
    uart_write_bytes(CONFIG_ESP_CONSOLE_UART_NUM, bytes, length);
}

void port_console_drain(void) {
    fflush(stdout);
    uart_wait_tx_done(CONFIG_ESP_CONSOLE_UART_NUM, pdMS_TO_TICKS(DRAIN_TIMEOUT_MS));
}
