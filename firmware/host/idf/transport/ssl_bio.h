// An OpenSSL BIO over tcp_socket_t, so that TLS records wait for the same send buffer as plain bytes.
#pragma once

#include <openssl/bio.h>

#include "tcp_socket.h"

// The BIO borrows the socket. NULL when there is no memory.
BIO *ssl_bio_new(tcp_socket_t *socket);
