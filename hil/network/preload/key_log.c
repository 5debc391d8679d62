/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the keys of every TLS connection into the file HIL_KEY_LOG, in the format that NSS, OpenSSL and
 * Wireshark share, a line each, so that a capture can be read afterwards. Loaded with LD_PRELOAD.
 *
 * Who has the file can read what was said: it belongs where keys belong, and is for its owner only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Opened for each line: the file may be removed at any time, and then stays away with its folder. */
static void append_line(const SSL *ssl, const char *line) {
    (void)ssl;
    const char *path = getenv("HIL_KEY_LOG");
    int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (file < 0) {
        return;
    }
    struct iovec parts[] = {{(void *)line, strlen(line)}, {"\n", 1}};
    ssize_t written = writev(file, parts, 2); /* at once, so that lines of two connections never mix */
    (void)written;
    close(file);
}

SSL_CTX *SSL_CTX_new(const SSL_METHOD *method) {
    SSL_CTX *(*real)(const SSL_METHOD *) =
        (SSL_CTX * (*)(const SSL_METHOD *)) dlsym(RTLD_NEXT, "SSL_CTX_new");
    SSL_CTX *context = real != NULL ? real(method) : NULL;
    if (context != NULL) {
        SSL_CTX_set_keylog_callback(context, append_line);
    }
    return context;
}
