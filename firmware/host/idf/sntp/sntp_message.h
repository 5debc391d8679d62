/* SPDX-License-Identifier: Apache-2.0 */
// SNTP's 48 bytes (RFC 4330).
#pragma once

#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

#define SNTP_MESSAGE_BYTES 48

typedef enum {
    SNTP_NO_ANSWER, // something else: to be ignored
    SNTP_TIME,
    SNTP_GO_AWAY, // "kiss of death": the server does not want to be asked
} sntp_answer_t;

void sntp_message_write(uint8_t message[SNTP_MESSAGE_BYTES]);
// The time is that of sending; how long the way was is not considered, as in ESP-IDF's configuration.
sntp_answer_t sntp_message_read(const uint8_t *message, ssize_t bytes, struct timeval *time);
