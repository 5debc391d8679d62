/* SPDX-License-Identifier: Apache-2.0 */
/* The console's UART as far as a program prepares it to read lines: the host's standard input and output are
 * it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"
#include "freertos/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    UART_NUM_0,
    UART_NUM_1,
    UART_NUM_2,
    UART_NUM_MAX,
} uart_port_t;

/* UART_NUM_0 only: another one, and a queue of events, is ESP_ERR_NOT_SUPPORTED. */
esp_err_t uart_driver_install(uart_port_t uart_num, int rx_buffer_size, int tx_buffer_size, int queue_size,
                              QueueHandle_t *uart_queue, int intr_alloc_flags);
esp_err_t uart_driver_delete(uart_port_t uart_num);
bool uart_is_driver_installed(uart_port_t uart_num);

#ifdef __cplusplus
}
#endif
