/* SPDX-License-Identifier: Apache-2.0 */
/* ESP-IDF's is lwIP's, with all that a socket takes. The C library's netinet/in.h includes this one before
 * its types are there: then it is only the C library's, and comes again. */
#include_next <sys/socket.h>

#if !defined(_NETINET_IN_H) || defined(INADDR_ANY)
#include "lwip/sockets.h"
#endif
