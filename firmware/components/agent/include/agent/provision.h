/* SPDX-License-Identifier: Apache-2.0 */
/* What a board is told after each boot: credentials, time, where the broker is.
 *
 * It arrives by the console command `provision`, lives in RAM only, is never part of the image, never
 * echoed and never logged.
 */
#pragma once

#include <stdint.h>

/* Sizes include the terminating NUL. A PEM field takes a chain of two ECDSA certificates or an RSA-4096 key,
 * and no more memory than it has characters.
 */
enum {
    AGENT_PEM_SIZE = 4096,
    AGENT_SSID_SIZE = 33, /* 32 octets, IEEE 802.11 */
    AGENT_PSK_SIZE = 65,  /* 63 characters or 64 hex digits, WPA2 */
    AGENT_HOST_SIZE = 64,
    AGENT_WORD_SIZE = 64,
    AGENT_LINK_SIZE = 160,
};

/* Text fields are NUL-terminated and "" when absent; numbers are 0 when absent. */
typedef struct {
    const char *ca_pem; /* the three are on the heap, and stay until they are told anew */
    const char *client_cert_pem;
    const char *client_key_pem;
    char link[AGENT_LINK_SIZE]; /* "" or "wifi": Wi-Fi; else the words of a wired link (link.h) */
    char ssid[AGENT_SSID_SIZE];
    char psk[AGENT_PSK_SIZE];
    char broker_host[AGENT_HOST_SIZE];
    uint16_t broker_tcp_port;
    uint16_t broker_tls_port;
    uint16_t broker_mtls_port;
    uint16_t broker_password_port; /* plain TCP, wants mqtt_username and mqtt_password */
    char mqtt_username[AGENT_WORD_SIZE];
    char mqtt_password[AGENT_WORD_SIZE];
    char peer_host[AGENT_HOST_SIZE]; /* address of the host's peer of the bench: an iperf, an HTTP server */
    char peer_name[AGENT_HOST_SIZE]; /* its name, which dns_host resolves */
    char dns_host[AGENT_HOST_SIZE];
    uint16_t peer_port;
    uint16_t peer_tls_port;
    int64_t utc_us; /* time of day as last provisioned; the system clock was set from it */
} agent_provision_t;
