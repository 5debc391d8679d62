/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sntp_message.h"

enum { VERSION_4 = 4 << 3, MODE_MASK = 7, MODE_CLIENT = 3, MODE_SERVER = 4, MODE_BROADCAST = 5 };
enum { STRATUM_AT = 1, SENT_AT = 40 };

#define SECONDS_1900_TO_1970 INT64_C(2208988800)
#define SECONDS_1970_TO_2036 INT64_C(2085978496)

void sntp_message_write(uint8_t message[SNTP_MESSAGE_BYTES]) {
    memset(message, 0, SNTP_MESSAGE_BYTES);
    message[0] = VERSION_4 | MODE_CLIENT;
}

static uint32_t big_endian(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

sntp_answer_t sntp_message_read(const uint8_t *message, ssize_t bytes, struct timeval *time) {
    if (bytes < SNTP_MESSAGE_BYTES) {
        return SNTP_NO_ANSWER;
    }
    const int mode = message[0] & MODE_MASK;
    if (mode != MODE_SERVER && mode != MODE_BROADCAST) {
        return SNTP_NO_ANSWER;
    }
    if (message[STRATUM_AT] == 0) {
        return SNTP_GO_AWAY;
    }
    // The seconds begin again in 2036; with the highest bit they are those from 1968 on.
    const uint32_t seconds = big_endian(message + SENT_AT);
    const uint64_t fraction = big_endian(message + SENT_AT + 4);
    time->tv_sec = (seconds & 0x80000000U) != 0 ? (int64_t)seconds - SECONDS_1900_TO_1970
                                                : (int64_t)seconds + SECONDS_1970_TO_2036;
    time->tv_usec = (suseconds_t)(fraction * 1000000 >> 32);
    return SNTP_TIME;
}
