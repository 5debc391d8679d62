/* SPDX-License-Identifier: Apache-2.0 */
/* ESP-IDF's is lwIP's: getaddrinfo() asks the board's name servers. */
#pragma once
#include_next <netdb.h>

#include "lwip/netdb.h"
