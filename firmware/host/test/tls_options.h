/* SPDX-License-Identifier: Apache-2.0 */
/* The options of test_tls_driver's `connect`, as a configuration of esp-tls. */
#pragma once

#include <stdbool.h>

#include "esp_tls.h"
#include "expect.h"

static esp_tls_cfg_t s_config;
static char s_pem[3][8192], s_name[64];
static bool s_resume, s_twice;

static inline const unsigned char *read_pem(char pem[8192], const char *path) {
    FILE *file = fopen(path, "r");
    EXPECT(file != NULL);
    pem[fread(pem, 1, 8191, file)] = '\0';
    fclose(file);
    return (const unsigned char *)pem;
}

static inline void take_option(const char *key, const char *value) {
    if (strcmp(key, "ca") == 0) {
        s_config.cacert_buf = read_pem(s_pem[0], value);
    } else if (strcmp(key, "cert") == 0) {
        s_config.clientcert_buf = read_pem(s_pem[1], value);
    } else if (strcmp(key, "key") == 0) {
        s_config.clientkey_buf = read_pem(s_pem[2], value);
    } else if (strcmp(key, "name") == 0) {
        snprintf(s_name, sizeof(s_name), "%s", value);
        s_config.common_name = s_name;
    } else if (strcmp(key, "resume") == 0) {
        s_resume = strcmp(value, "0") != 0;
        s_twice = strcmp(value, "twice") == 0;
    } else if (strcmp(key, "timeout_ms") == 0) {
        s_config.timeout_ms = atoi(value);
    } else if (strcmp(key, "skip") == 0) {
        s_config.skip_common_name = atoi(value) != 0;
    } else if (strcmp(key, "plain") == 0) {
        s_config.is_plain_tcp = atoi(value) != 0;
    } else if (strcmp(key, "non_block") == 0) {
        s_config.non_block = atoi(value) != 0;
    }
}

static inline void take_options(char *options) {
    s_config = (esp_tls_cfg_t){.timeout_ms = 5000};
    s_resume = s_twice = false;
    for (char *word = strtok(options, " "); word != NULL; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        take_option(word, value);
    }
}
