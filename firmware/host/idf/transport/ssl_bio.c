#include "ssl_bio.h"

#include <errno.h>
#include <pthread.h>

static int socket_bio_write(BIO *bio, const char *data, int len) {
    BIO_clear_retry_flags(bio);
    ssize_t n = tcp_socket_send(BIO_get_data(bio), data, (size_t)len);
    if (n < 0 && errno == EAGAIN) {
        BIO_set_retry_write(bio);
    }
    return (int)n;
}

static int socket_bio_read(BIO *bio, char *buffer, int len) {
    BIO_clear_retry_flags(bio);
    ssize_t n = tcp_socket_receive(BIO_get_data(bio), buffer, (size_t)len);
    if (n < 0 && errno == EAGAIN) {
        BIO_set_retry_read(bio);
    }
    if (n == 0) {
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    }
    return (int)n;
}

static long socket_bio_ctrl(BIO *bio, int command, long number, void *pointer) {
    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF) {
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    }
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *s_method;

static void create_method(void) {
    s_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tcp_socket");
    if (s_method != NULL) {
        BIO_meth_set_write(s_method, socket_bio_write);
        BIO_meth_set_read(s_method, socket_bio_read);
        BIO_meth_set_ctrl(s_method, socket_bio_ctrl);
    }
}

BIO *ssl_bio_new(tcp_socket_t *socket) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_method);
    BIO *bio = s_method == NULL ? NULL : BIO_new(s_method);
    if (bio != NULL) {
        BIO_set_data(bio, socket);
        BIO_set_init(bio, 1);
    }
    return bio;
}
