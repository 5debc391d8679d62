/* SPDX-License-Identifier: Apache-2.0 */
// An esp-mqtt application driven line by line from stdin: tests/test_host_mqtt_*.py say what to do, this
// program does it through the public API and prints what came back and every event. It takes no decision of
// its own.
//
//   init key=value…           uri ca cert key id user password in out keepalive retransmit reconnect timeout
//   outbox auto start | stop | destroy | disconnect | reconnect | outbox | unsubscribe TOPIC subscribe TOPIC
//   QOS | publish TOPIC BYTES QOS RETAIN | enqueue TOPIC BYTES QOS RETAIN STORE nodelay 0|1               set
//   in MQTT_EVENT_CONNECTED, read back and printed there echo TOPIC                publish to TOPIC from the
//   handler of each PUBLISHED event, once
//
// Output: `result COMMAND VALUE us=DURATION tid=THREAD` and `event NAME key=value… tid=THREAD`.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "esp_timer.h"
#include "esp_transport.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "mqtt_client.h"

static esp_mqtt_client_handle_t s_client;
static char s_text[12][256]; // the strings of the last init
static char *s_pem[3];
static int s_nodelay = -1;
static char s_echo_topic[128];
static bool s_is_tls;

static int thread_id(void) {
    return (int)syscall(SYS_gettid);
}

static void print_nodelay(void) {
    char tcp[] = MQTT_OVER_TCP_SCHEME, tls[] = MQTT_OVER_SSL_SCHEME;
    int fd = esp_transport_get_socket(esp_mqtt_client_get_transport(s_client, s_is_tls ? tls : tcp));
    int value = s_nodelay, mss = 0;
    socklen_t size = sizeof(value);
    if (s_nodelay >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value));
    }
    getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size);
    getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &size);
    printf("socket nodelay=%d mss=%d\n", value != 0, mss);
}

static void print_data(const esp_mqtt_event_t *e) {
    printf("event DATA id=%d topic=%.*s len=%d offset=%d total=%d qos=%d retain=%d dup=%d tid=%d\n",
           e->msg_id, e->topic_len, e->topic != NULL ? e->topic : "", e->data_len, e->current_data_offset,
           e->total_data_len, e->qos, e->retain, e->dup, thread_id());
}

static void print_error(const esp_mqtt_event_t *e) {
    const esp_mqtt_error_codes_t *c = e->error_handle;
    printf("event ERROR type=%d code=%d esp=%d tls=%d flags=%d errno=%d tid=%d\n", (int)c->error_type,
           (int)c->connect_return_code, c->esp_tls_last_esp_err, c->esp_tls_stack_err,
           c->esp_tls_cert_verify_flags, c->esp_transport_sock_errno, thread_id());
}

static void print_other(const esp_mqtt_event_t *e) {
    static const char *const names[] = {"ERROR",      "CONNECTED",      "DISCONNECTED",
                                        "SUBSCRIBED", "UNSUBSCRIBED",   "PUBLISHED",
                                        "DATA",       "BEFORE_CONNECT", "DELETED"};
    printf("event %s id=%d session=%d failed=%d core=%d tid=%d\n", names[e->event_id], e->msg_id,
           e->session_present,
           e->event_id == MQTT_EVENT_SUBSCRIBED &&
               e->error_handle->error_type == MQTT_ERROR_TYPE_SUBSCRIBE_FAILED,
           (int)xTaskGetCoreID(NULL), thread_id());
}

static void on_event(void *arg, esp_event_base_t base, int32_t event_id, void *data) {
    const esp_mqtt_event_t *e = data;
    (void)arg;
    (void)base;
    if (event_id == MQTT_EVENT_DATA) {
        print_data(e);
    } else if (event_id == MQTT_EVENT_ERROR) {
        print_error(e);
    } else {
        print_other(e);
    }
    if (event_id == MQTT_EVENT_CONNECTED) {
        print_nodelay();
    }
    if (event_id == MQTT_EVENT_PUBLISHED && s_echo_topic[0] != '\0') {
        char topic[sizeof(s_echo_topic)];
        memcpy(topic, s_echo_topic, sizeof(topic));
        s_echo_topic[0] = '\0';
        printf("result echo %d\n", esp_mqtt_client_publish(s_client, topic, "echo", 0, 1, 0));
    }
}

static char *read_pem(int slot, const char *path) {
    FILE *file = fopen(path, "r");
    free(s_pem[slot]);
    s_pem[slot] = calloc(1, 65536);
    if (file == NULL || s_pem[slot] == NULL || fread(s_pem[slot], 1, 65535, file) == 0) {
        perror(path);
        exit(2);
    }
    fclose(file);
    return s_pem[slot];
}

static void take_text_option(esp_mqtt_client_config_t *c, const char *key, const char *value) {
    if (strcmp(key, "uri") == 0) {
        c->broker.address.uri = value;
        s_is_tls = strncmp(value, "mqtts", 5) == 0;
    } else if (strcmp(key, "ca") == 0) {
        c->broker.verification.certificate = read_pem(0, value);
    } else if (strcmp(key, "cert") == 0) {
        c->credentials.authentication.certificate = read_pem(1, value);
    } else if (strcmp(key, "key") == 0) {
        c->credentials.authentication.key = read_pem(2, value);
    } else if (strcmp(key, "id") == 0) {
        c->credentials.client_id = value;
    } else if (strcmp(key, "user") == 0) {
        c->credentials.username = value;
    } else if (strcmp(key, "password") == 0) {
        c->credentials.authentication.password = value;
    }
}

static void take_number_option(esp_mqtt_client_config_t *c, const char *key, int value) {
    struct {
        const char *key;
        int *field;
    } numbers[] = {
        {"in", &c->buffer.size},
        {"out", &c->buffer.out_size},
        {"keepalive", &c->session.keepalive},
        {"retransmit", &c->session.message_retransmit_timeout},
        {"reconnect", &c->network.reconnect_timeout_ms},
        {"timeout", &c->network.timeout_ms},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            *numbers[i].field = value;
        }
    }
    if (strcmp(key, "outbox") == 0) {
        c->outbox.limit = (uint64_t)value;
    } else if (strcmp(key, "auto") == 0) {
        c->network.disable_auto_reconnect = value == 0;
    }
}

static int do_init(char *options) {
    esp_mqtt_client_config_t config = {0};
    int slot = 0;
    for (char *option = strtok(options, " "); option != NULL && slot < 12;
         option = strtok(NULL, " "), slot++) {
        snprintf(s_text[slot], sizeof(s_text[slot]), "%s", option);
        char *value = strchr(s_text[slot], '=');
        *value++ = '\0';
        take_text_option(&config, s_text[slot], value);
        take_number_option(&config, s_text[slot], atoi(value));
    }
    s_client = esp_mqtt_client_init(&config);
    return s_client == NULL ? -1 : esp_mqtt_client_register_event(s_client, MQTT_EVENT_ANY, on_event, NULL);
}

// The payload is a counting pattern, so that the receiver sees a piece that is missing or doubled.
static int do_publish(const char *arguments, bool enqueue) {
    char topic[128];
    int length = 0, qos = 0, retain = 0, store = 0;
    if (sscanf(arguments, "%127s %d %d %d %d", topic, &length, &qos, &retain, &store) < 4) {
        return -100;
    }
    char *payload = malloc((size_t)length + 1);
    for (int i = 0; i < length; i++) {
        payload[i] = (char)('a' + i % 26);
    }
    payload[length] = '\0';
    int result = enqueue ? esp_mqtt_client_enqueue(s_client, topic, payload, length, qos, retain, store != 0)
                         : esp_mqtt_client_publish(s_client, topic, payload, length, qos, retain);
    free(payload);
    return result;
}

static int do_subscribe(const char *arguments) {
    char topic[128];
    int qos = 0;
    sscanf(arguments, "%127s %d", topic, &qos);
    return esp_mqtt_client_subscribe(s_client, (const char *)topic, qos);
}

static int do_setting(const char *command, const char *arguments) {
    if (strcmp(command, "nodelay") == 0) {
        s_nodelay = atoi(arguments);
        return 0;
    }
    if (strcmp(command, "echo") == 0) {
        snprintf(s_echo_topic, sizeof(s_echo_topic), "%s", arguments);
        return 0;
    }
    return -100;
}

static int do_life(const char *command) {
    static const struct {
        const char *name;
        esp_err_t (*call)(esp_mqtt_client_handle_t client);
    } calls[] = {
        {"start", esp_mqtt_client_start},         {"stop", esp_mqtt_client_stop},
        {"destroy", esp_mqtt_client_destroy},     {"disconnect", esp_mqtt_client_disconnect},
        {"reconnect", esp_mqtt_client_reconnect},
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(command, calls[i].name) == 0) {
            return calls[i].call(s_client);
        }
    }
    return -100;
}

static int do_command(const char *command, char *arguments) {
    if (strcmp(command, "init") == 0) {
        return do_init(arguments);
    }
    if (strcmp(command, "publish") == 0 || strcmp(command, "enqueue") == 0) {
        return do_publish(arguments, command[0] == 'e');
    }
    if (strcmp(command, "subscribe") == 0) {
        return do_subscribe(arguments);
    }
    if (strcmp(command, "unsubscribe") == 0) {
        return esp_mqtt_client_unsubscribe(s_client, arguments);
    }
    if (strcmp(command, "outbox") == 0) {
        return esp_mqtt_client_get_outbox_size(s_client);
    }
    int result = do_life(command);
    return result != -100 ? result : do_setting(command, arguments);
}

int main(void) {
    char line[2048];
    setvbuf(stdout, NULL, _IOLBF, 0);
    esp_timer_init();
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *arguments = strchr(line, ' ');
        if (arguments != NULL) {
            *arguments++ = '\0';
        }
        char none[] = "";
        int64_t before_us = esp_timer_get_time();
        int result = do_command(line, arguments != NULL ? arguments : none);
        printf("result %s %d us=%lld tid=%d\n", line, result, (long long)(esp_timer_get_time() - before_us),
               thread_id());
    }
    for (int i = 0; i < 3; i++) {
        free(s_pem[i]);
    }
    return 0;
}
