/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/uart.h"

#include "driver/uart_vfs.h"

static bool s_installed;

esp_err_t uart_driver_install(uart_port_t uart_num, int rx_buffer_size, int tx_buffer_size, int queue_size,
                              QueueHandle_t *uart_queue, int intr_alloc_flags) {
    (void)rx_buffer_size;
    (void)tx_buffer_size;
    (void)queue_size;
    (void)intr_alloc_flags;
    if (uart_num != UART_NUM_0 || uart_queue != NULL) {
        return ESP_ERR_NOT_SUPPORTED;
    }
    if (s_installed) {
        return ESP_FAIL;
    }
    s_installed = true;
    return ESP_OK;
}

esp_err_t uart_driver_delete(uart_port_t uart_num) {
    if (uart_num != UART_NUM_0) {
        return ESP_ERR_NOT_SUPPORTED;
    }
    s_installed = false;
    return ESP_OK;
}

bool uart_is_driver_installed(uart_port_t uart_num) {
    return uart_num == UART_NUM_0 && s_installed;
}

void uart_vfs_dev_use_driver(int uart_num) {
    (void)uart_num;
}

void uart_vfs_dev_use_nonblocking(int uart_num) {
    (void)uart_num;
}

int uart_vfs_dev_port_set_rx_line_endings(int uart_num, esp_line_endings_t mode) {
    (void)mode;
    return uart_num == UART_NUM_0 ? 0 : -1;
}

int uart_vfs_dev_port_set_tx_line_endings(int uart_num, esp_line_endings_t mode) {
    (void)mode;
    return uart_num == UART_NUM_0 ? 0 : -1;
}
