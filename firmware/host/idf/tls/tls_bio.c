/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_bio.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

// As Mbed TLS's net_sockets.c in ESP-IDF: EAGAIN means "call again" on a blocking socket, too.
static bool to_be_called_again(ssize_t n) {
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static int io_write(BIO *bio, const char *data, int len) {
    const tls_io_t *io = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t n = io->send(io->context, data, (size_t)len);
    if (to_be_called_again(n)) {
        BIO_set_retry_write(bio);
    }
    return (int)n;
}

static int io_read(BIO *bio, char *buffer, int len) {
    const tls_io_t *io = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t n = io->receive(io->context, buffer, (size_t)len);
    if (to_be_called_again(n)) {
        BIO_set_retry_read(bio);
    }
    if (n == 0) {
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    }
    return (int)n;
}

static long io_ctrl(BIO *bio, int command, long number, void *pointer) {
    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF) {
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    }
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *s_method;

static void create_method(void) {
    s_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tls_io");
    if (s_method != NULL) {
        BIO_meth_set_write(s_method, io_write);
        BIO_meth_set_read(s_method, io_read);
        BIO_meth_set_ctrl(s_method, io_ctrl);
    }
}

BIO *tls_bio_new(const tls_io_t *io) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_method);
    BIO *bio = s_method == NULL ? NULL : BIO_new(s_method);
    if (bio != NULL) {
        BIO_set_data(bio, (void *)io);
        BIO_set_init(bio, 1);
    }
    return bio;
}
