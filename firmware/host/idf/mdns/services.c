/* SPDX-License-Identifier: Apache-2.0 */
/* What the board offers: its name and its services. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mdns_priv.h"

#define SERVICES_MAX 10 /* CONFIG_MDNS_MAX_SERVICES */
#define LEGACY_TTL_S 10
#define TYPES_NAME "_services._dns-sd._udp.local"

typedef struct service {
    struct service *next;
    char *instance; /* NULL: the board's */
    char *type;
    char *proto;
    uint16_t port;
    char **items; /* key=value, or a key alone */
    size_t item_count;
} service_t;

static char *s_hostname;
static char *s_instance;
static service_t *s_services;

static esp_err_t replace(char **place, const char *text) {
    char *copy = strdup(text);
    if (copy == NULL) {
        return ESP_ERR_NO_MEM;
    }
    free(*place);
    *place = copy;
    return ESP_OK;
}

static bool is_label(const char *text) {
    return text != NULL && text[0] != '\0' && strlen(text) < MDNS_NAME_MAX_LEN;
}

static service_t **find(const char *type, const char *proto) {
    service_t **at = &s_services;
    while (*at != NULL && (strcasecmp((*at)->type, type) != 0 || strcasecmp((*at)->proto, proto) != 0)) {
        at = &(*at)->next;
    }
    return at;
}

static void free_items(service_t *service) {
    for (size_t i = 0; i < service->item_count; i++) {
        free(service->items[i]);
    }
    free(service->items);
    service->items = NULL;
    service->item_count = 0;
}

static void free_service(service_t *service) {
    free_items(service);
    free(service->instance);
    free(service->type);
    free(service->proto);
    free(service);
}

static bool full_name(const service_t *service, char name[NS_MAXDNAME]) {
    const char *instance = service->instance != NULL ? service->instance
                           : s_instance != NULL      ? s_instance
                                                     : s_hostname;
    return instance != NULL && mdns_name(name, instance, service->type, service->proto);
}

/* A name as the data of a record. */
static size_t packed(const char *name, uint8_t *data) {
    int bytes = ns_name_pton(name, data, NS_MAXCDNAME) < 0 ? -1 : 0;
    while (bytes >= 0 && data[bytes] != 0) {
        bytes += data[bytes] + 1;
    }
    return (size_t)(bytes + 1);
}

typedef struct {
    mdns_message_t *message;
    ns_sect section;
    bool legacy;
    uint32_t ttl_s; /* of what is not the host's; 0: all is taken back */
} out_t;

static void put(const out_t *out, const char *name, uint16_t type, uint32_t ttl_s, const void *data,
                size_t bytes) {
    bool shared = type == ns_t_ptr || out->legacy;
    ttl_s = out->ttl_s == 0 ? 0 : ttl_s;
    mdns_put_record(out->message, out->section, name, type, shared ? ns_c_in : ns_c_in | MDNS_FLUSH,
                    out->legacy && ttl_s > LEGACY_TTL_S ? LEGACY_TTL_S : ttl_s, data, bytes);
}

static void put_address(const out_t *out) {
    char name[NS_MAXDNAME];
    struct in_addr address = mdns_own_address();
    if (s_hostname != NULL && mdns_name(name, s_hostname, NULL, NULL)) {
        put(out, name, ns_t_a, MDNS_HOST_TTL_S, &address, sizeof address);
    }
}

static void put_pointer(const out_t *out, const char *name, const char *to) {
    uint8_t data[NS_MAXCDNAME];
    put(out, name, ns_t_ptr, MDNS_TTL_S, data, packed(to, data));
}

static void put_server(const out_t *out, const service_t *service, const char *name) {
    uint8_t data[6 + NS_MAXCDNAME] = {0}; /* priority and weight 0 */
    char host[NS_MAXDNAME];
    if (s_hostname != NULL && mdns_name(host, s_hostname, NULL, NULL)) {
        ns_put16(service->port, data + 4);
        put(out, name, ns_t_srv, MDNS_HOST_TTL_S, data, 6 + packed(host, data + 6));
    }
}

static void put_texts(const out_t *out, const service_t *service, const char *name) {
    uint8_t data[MDNS_MESSAGE_BYTES] = {0};
    size_t bytes = 0;
    for (size_t i = 0; i < service->item_count; i++) {
        size_t length = strlen(service->items[i]);
        if (length < 256 && bytes + 1 + length <= sizeof data) {
            data[bytes] = (uint8_t)length;
            memcpy(data + bytes + 1, service->items[i], length);
            bytes += 1 + length;
        }
    }
    put(out, name, ns_t_txt, MDNS_TTL_S, data, bytes > 0 ? bytes : 1);
}

/* Answers in one section; what belongs to them, in the other, with `extra`. */
static bool answer_for(const out_t *out, const service_t *service, const char *asked, uint16_t type,
                       bool extra) {
    char name[NS_MAXDNAME], group[NS_MAXDNAME];
    if (!full_name(service, name) || !mdns_name(group, NULL, service->type, service->proto)) {
        return false;
    }
    bool pointer = strcasecmp(asked, group) == 0 && (type == ns_t_ptr || type == ns_t_any);
    bool own = strcasecmp(asked, name) == 0;
    bool server = own && (type == ns_t_srv || type == ns_t_any);
    bool texts = own && (type == ns_t_txt || type == ns_t_any);
    bool types = strcasecmp(asked, TYPES_NAME) == 0 && type == ns_t_ptr;
    if (!extra) {
        types ? put_pointer(out, TYPES_NAME, group) : (void)0;
        pointer ? put_pointer(out, group, name) : (void)0;
        server ? put_server(out, service, name) : (void)0;
        texts ? put_texts(out, service, name) : (void)0;
    } else if (pointer) {
        put_server(out, service, name);
        put_texts(out, service, name);
    }
    return pointer || server;
}

static void answer_question(const out_t *out, const char *asked, uint16_t type, bool extra) {
    char host[NS_MAXDNAME];
    bool needs_address = false;
    for (const service_t *service = s_services; service != NULL; service = service->next) {
        needs_address = answer_for(out, service, asked, type, extra) || needs_address;
    }
    bool named = s_hostname != NULL && mdns_name(host, s_hostname, NULL, NULL) && !strcasecmp(asked, host);
    if (extra ? needs_address : named && (type == ns_t_a || type == ns_t_any)) {
        put_address(out);
    }
}

/* RFC 6762, 7.1: who asks knows the answer already, for half of its time or more. */
static bool is_known(ns_msg *query, const char *asked) {
    bool known = false;
    for (int i = 0; i < ns_msg_count(*query, ns_s_an); i++) {
        ns_rr record;
        char to[NS_MAXDNAME], name[NS_MAXDNAME];
        if (ns_parserr(query, ns_s_an, i, &record) != 0 || ns_rr_type(record) != ns_t_ptr ||
            strcasecmp(ns_rr_name(record), asked) != 0 || ns_rr_ttl(record) < MDNS_TTL_S / 2 ||
            ns_name_uncompress(ns_msg_base(*query), ns_msg_end(*query), ns_rr_rdata(record), to, sizeof to) <
                0) {
            continue;
        }
        for (const service_t *service = s_services; service != NULL; service = service->next) {
            known = known || (full_name(service, name) && strcasecmp(name, to) == 0);
        }
    }
    return known;
}

bool mdns_services_answer(ns_msg *query, bool legacy, mdns_message_t *answer) {
    mdns_begin(answer, legacy ? ns_msg_id(*query) : 0, 0x8400); /* a response, authoritative */
    int questions = ns_msg_count(*query, ns_s_qd);
    for (int i = 0; i < questions && legacy; i++) {
        ns_rr question;
        if (ns_parserr(query, ns_s_qd, i, &question) == 0) {
            mdns_put_question(answer, ns_rr_name(question), (uint16_t)ns_rr_type(question));
        }
    }
    for (int extra = 0; extra < 2; extra++) {
        const out_t out = {answer, extra ? ns_s_ar : ns_s_an, legacy, MDNS_TTL_S};
        for (int i = 0; i < questions; i++) {
            ns_rr question;
            if (ns_parserr(query, ns_s_qd, i, &question) == 0 && !is_known(query, ns_rr_name(question))) {
                answer_question(&out, ns_rr_name(question), (uint16_t)ns_rr_type(question), extra);
            }
        }
    }
    return answer->counts[ns_s_an] > 0;
}

static void put_service(const out_t *out, const service_t *service) {
    char name[NS_MAXDNAME], group[NS_MAXDNAME];
    if (full_name(service, name) && mdns_name(group, NULL, service->type, service->proto)) {
        put_pointer(out, group, name);
        put_server(out, service, name);
        put_texts(out, service, name);
    }
}

void mdns_services_announce(uint32_t ttl_s) {
    mdns_message_t message;
    const out_t out = {&message, ns_s_an, false, ttl_s};
    mdns_begin(&message, 0, 0x8400);
    for (const service_t *service = s_services; service != NULL; service = service->next) {
        put_service(&out, service);
    }
    put_address(&out);
    if (message.counts[ns_s_an] > 0) {
        mdns_send_all(&message);
    }
}

void mdns_services_free(void) {
    while (s_services != NULL) {
        service_t *service = s_services;
        s_services = service->next;
        free_service(service);
    }
    free(s_hostname);
    free(s_instance);
    s_hostname = s_instance = NULL;
}

esp_err_t mdns_hostname_set(const char *hostname) {
    if (!is_label(hostname)) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!mdns_lock()) {
        return ESP_ERR_INVALID_STATE;
    }
    esp_err_t result = replace(&s_hostname, hostname);
    mdns_services_announce(MDNS_TTL_S);
    mdns_unlock();
    return result;
}

esp_err_t mdns_hostname_get(char *hostname) {
    if (hostname == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!mdns_lock()) {
        return ESP_ERR_INVALID_STATE;
    }
    bool named = s_hostname != NULL;
    snprintf(hostname, MDNS_NAME_BUF_LEN, "%s", named ? s_hostname : "");
    mdns_unlock();
    return named ? ESP_OK : ESP_ERR_INVALID_STATE;
}

bool mdns_hostname_exists(const char *hostname) {
    if (hostname == NULL || !mdns_lock()) {
        return false;
    }
    bool found = s_hostname != NULL && strcasecmp(s_hostname, hostname) == 0;
    mdns_unlock();
    return found;
}

esp_err_t mdns_instance_name_set(const char *instance_name) {
    if (!is_label(instance_name)) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!mdns_lock()) {
        return ESP_ERR_INVALID_STATE;
    }
    esp_err_t result = replace(&s_instance, instance_name);
    mdns_services_announce(MDNS_TTL_S);
    mdns_unlock();
    return result;
}

static esp_err_t set_item(service_t *service, const char *key, const char *value) {
    size_t length = strlen(key), at = 0;
    char *item = NULL;
    while (at < service->item_count && (strncasecmp(service->items[at], key, length) != 0 ||
                                        strchr("=", service->items[at][length]) == NULL)) {
        at++;
    }
    size_t bytes = length + (value != NULL ? strlen(value) : 0) + 2;
    item = malloc(bytes);
    if (item == NULL) {
        return ESP_ERR_NO_MEM;
    }
    snprintf(item, bytes, "%s%s%s", key, value != NULL ? "=" : "", value != NULL ? value : "");
    if (at < service->item_count) {
        free(service->items[at]);
    } else {
        char **more = realloc(service->items, (at + 1) * sizeof *more);
        if (more == NULL) {
            free(item);
            return ESP_ERR_NO_MEM;
        }
        service->items = more;
        service->item_count++;
    }
    service->items[at] = item;
    return ESP_OK;
}

static esp_err_t set_items(service_t *service, const mdns_txt_item_t txt[], size_t count) {
    esp_err_t result = ESP_OK;
    free_items(service);
    for (size_t i = 0; i < count && result == ESP_OK; i++) {
        result = set_item(service, txt[i].key, txt[i].value);
    }
    return result;
}

static size_t service_count(void) {
    size_t count = 0;
    for (const service_t *service = s_services; service != NULL; service = service->next) {
        count++;
    }
    return count;
}

static esp_err_t add(const char *instance, const char *type, const char *proto, uint16_t port,
                     const mdns_txt_item_t txt[], size_t count) {
    if (s_hostname == NULL) {
        return ESP_ERR_INVALID_STATE;
    }
    if (*find(type, proto) != NULL) {
        return ESP_ERR_INVALID_ARG; /* as there, without CONFIG_MDNS_MULTIPLE_INSTANCE */
    }
    service_t *service = service_count() < SERVICES_MAX ? calloc(1, sizeof *service) : NULL;
    if (service == NULL) {
        return ESP_ERR_NO_MEM;
    }
    service->port = port;
    if ((instance != NULL && replace(&service->instance, instance) != ESP_OK) ||
        replace(&service->type, type) != ESP_OK || replace(&service->proto, proto) != ESP_OK ||
        set_items(service, txt, count) != ESP_OK) {
        free_service(service);
        return ESP_ERR_NO_MEM;
    }
    service->next = s_services;
    s_services = service;
    mdns_services_announce(MDNS_TTL_S);
    return ESP_OK;
}

esp_err_t mdns_service_add(const char *instance_name, const char *service_type, const char *proto,
                           uint16_t port, mdns_txt_item_t txt[], size_t num_items) {
    if (!is_label(service_type) || !is_label(proto) || port == 0 || (txt == NULL && num_items > 0)) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!mdns_lock()) {
        return ESP_ERR_INVALID_STATE;
    }
    esp_err_t result = add(instance_name, service_type, proto, port, txt, num_items);
    mdns_unlock();
    return result;
}

bool mdns_service_exists(const char *service_type, const char *proto, const char *hostname) {
    if (service_type == NULL || proto == NULL || !mdns_lock()) {
        return false;
    }
    bool of_host = hostname == NULL || (s_hostname != NULL && strcasecmp(s_hostname, hostname) == 0);
    bool found = of_host && *find(service_type, proto) != NULL;
    mdns_unlock();
    return found;
}

/* Takes the lock and finds the service; not ESP_OK: without the lock. */
static esp_err_t with_service(const char *type, const char *proto, service_t ***place) {
    if (type == NULL || proto == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!mdns_lock()) {
        return ESP_ERR_INVALID_STATE;
    }
    *place = find(type, proto);
    if (**place == NULL) {
        mdns_unlock();
        return ESP_ERR_NOT_FOUND;
    }
    return ESP_OK;
}

static esp_err_t changed(esp_err_t result) {
    mdns_services_announce(MDNS_TTL_S);
    mdns_unlock();
    return result;
}

/* RFC 6762, 10.1: what goes is announced with a time of 0. */
static void remove_at(service_t **place) {
    service_t *service = *place;
    mdns_message_t message;
    const out_t out = {&message, ns_s_an, false, 0};
    mdns_begin(&message, 0, 0x8400);
    put_service(&out, service);
    mdns_send_all(&message);
    *place = service->next;
    free_service(service);
}

esp_err_t mdns_service_remove(const char *service_type, const char *proto) {
    service_t **place;
    esp_err_t result = with_service(service_type, proto, &place);
    if (result == ESP_OK) {
        remove_at(place);
        mdns_unlock();
    }
    return result;
}

esp_err_t mdns_service_remove_all(void) {
    if (!mdns_lock()) {
        return ESP_ERR_INVALID_STATE;
    }
    while (s_services != NULL) {
        remove_at(&s_services);
    }
    mdns_unlock();
    return ESP_OK;
}

esp_err_t mdns_service_instance_name_set(const char *service_type, const char *proto,
                                         const char *instance_name) {
    service_t **place;
    if (!is_label(instance_name)) {
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t result = with_service(service_type, proto, &place);
    return result != ESP_OK ? result : changed(replace(&(*place)->instance, instance_name));
}

esp_err_t mdns_service_port_set(const char *service_type, const char *proto, uint16_t port) {
    service_t **place;
    esp_err_t result = port == 0 ? ESP_ERR_INVALID_ARG : with_service(service_type, proto, &place);
    if (result != ESP_OK) {
        return result;
    }
    (*place)->port = port;
    return changed(ESP_OK);
}

esp_err_t mdns_service_txt_set(const char *service_type, const char *proto, mdns_txt_item_t txt[],
                               uint8_t num_items) {
    service_t **place;
    if (txt == NULL && num_items > 0) {
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t result = with_service(service_type, proto, &place);
    return result != ESP_OK ? result : changed(set_items(*place, txt, num_items));
}

esp_err_t mdns_service_txt_item_set(const char *service_type, const char *proto, const char *key,
                                    const char *value) {
    service_t **place;
    esp_err_t result = key == NULL ? ESP_ERR_INVALID_ARG : with_service(service_type, proto, &place);
    return result != ESP_OK ? result : changed(set_item(*place, key, value));
}

esp_err_t mdns_service_txt_item_remove(const char *service_type, const char *proto, const char *key) {
    service_t **place;
    esp_err_t result = key == NULL ? ESP_ERR_INVALID_ARG : with_service(service_type, proto, &place);
    if (result != ESP_OK) {
        return result;
    }
    service_t *service = *place;
    size_t length = strlen(key), kept = 0;
    for (size_t i = 0; i < service->item_count; i++) {
        char *item = service->items[i];
        if (strncasecmp(item, key, length) == 0 && (item[length] == '=' || item[length] == '\0')) {
            free(item);
        } else {
            service->items[kept++] = item;
        }
    }
    service->item_count = kept;
    return changed(ESP_OK);
}
