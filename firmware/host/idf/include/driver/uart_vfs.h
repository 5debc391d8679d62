/* SPDX-License-Identifier: Apache-2.0 */
/* How the console's lines end: the host's terminal or board sends and gets "\n", whatever is set. */
#pragma once
#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    ESP_LINE_ENDINGS_CRLF,
    ESP_LINE_ENDINGS_CR,
    ESP_LINE_ENDINGS_LF,
} esp_line_endings_t;

void uart_vfs_dev_use_driver(int uart_num);
void uart_vfs_dev_use_nonblocking(int uart_num);
int uart_vfs_dev_port_set_rx_line_endings(int uart_num, esp_line_endings_t mode);
int uart_vfs_dev_port_set_tx_line_endings(int uart_num, esp_line_endings_t mode);

#ifdef __cplusplus
}
#endif
