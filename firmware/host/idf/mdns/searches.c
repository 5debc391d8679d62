/* SPDX-License-Identifier: Apache-2.0 */
/* What the board asks for. A search is asked at once, after 1 s, after 2 s more and so on (RFC 6762, 5.2). */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "mdns_priv.h"

struct mdns_search_once_s {
    struct mdns_search_once_s *next;
    char asked[NS_MAXDNAME];
    char *type; /* of a service, NULL for a host */
    char *proto;
    uint16_t record;
    int64_t until_us;
    int64_t ask_us;
    int64_t pause_us;
    size_t max_results; /* 0: any number */
    mdns_result_t *results;
    mdns_query_notify_t notify;
    SemaphoreHandle_t done;
    bool ended;
};

static mdns_search_once_t *s_searches;

static size_t result_count(const mdns_search_once_t *search) {
    size_t count = 0;
    for (const mdns_result_t *result = search->results; result != NULL; result = result->next) {
        count++;
    }
    return count;
}

static bool instance_of(const mdns_search_once_t *search, const mdns_result_t *result,
                        char name[NS_MAXDNAME]) {
    return result->instance_name != NULL &&
           mdns_name(name, result->instance_name, search->type, search->proto);
}

static bool is_complete(const mdns_search_once_t *search, const mdns_result_t *result) {
    bool server = search->record == MDNS_TYPE_PTR || search->record == MDNS_TYPE_SRV;
    return !server || (result->hostname != NULL && result->addr != NULL);
}

static bool is_satisfied(const mdns_search_once_t *search) {
    bool complete = true;
    for (const mdns_result_t *result = search->results; result != NULL; result = result->next) {
        complete = complete && is_complete(search, result);
    }
    return complete && search->max_results > 0 && result_count(search) >= search->max_results;
}

/* The question, and those for what the results found so far lack. */
static void ask(mdns_search_once_t *search) {
    mdns_message_t message;
    char name[NS_MAXDNAME];
    mdns_begin(&message, 0, 0);
    mdns_put_question(&message, search->asked, search->record);
    for (const mdns_result_t *result = search->results; result != NULL; result = result->next) {
        if (search->record == MDNS_TYPE_PTR && result->hostname == NULL &&
            instance_of(search, result, name)) {
            mdns_put_question(&message, name, ns_t_srv);
            mdns_put_question(&message, name, ns_t_txt);
        } else if (result->hostname != NULL && result->addr == NULL &&
                   mdns_name(name, result->hostname, NULL, NULL)) {
            mdns_put_question(&message, name, ns_t_a);
        }
    }
    mdns_send_all(&message);
}

static void end(mdns_search_once_t *search) {
    search->ended = true;
    xSemaphoreGive(search->done);
    if (search->notify != NULL) {
        search->notify(search);
    }
}

void mdns_searches_tick(void) {
    int64_t now_us = esp_timer_get_time();
    for (mdns_search_once_t *search = s_searches; search != NULL; search = search->next) {
        if (search->ended) {
            continue;
        }
        if (now_us >= search->until_us) {
            end(search);
        } else if (now_us >= search->ask_us && mdns_own_address().s_addr != 0) {
            ask(search);
            search->ask_us = now_us + search->pause_us;
            search->pause_us *= 2;
        }
    }
}

static mdns_result_t *add_result(mdns_search_once_t *search, uint32_t ttl_s) {
    if (search->max_results > 0 && result_count(search) >= search->max_results) {
        return NULL;
    }
    mdns_result_t *result = calloc(1, sizeof *result);
    if (result != NULL) {
        result->esp_netif = esp_netif_get_default_netif();
        result->ttl = ttl_s;
        result->service_type = search->type != NULL ? strdup(search->type) : NULL;
        result->proto = search->proto != NULL ? strdup(search->proto) : NULL;
        result->next = search->results;
        search->results = result;
    }
    return result;
}

static mdns_result_t *of_instance(mdns_search_once_t *search, const char *name) {
    char own[NS_MAXDNAME];
    mdns_result_t *result = search->results;
    while (result != NULL && (!instance_of(search, result, own) || strcasecmp(own, name) != 0)) {
        result = result->next;
    }
    return result;
}

/* The result that a record of one instance belongs to: what was found of it, or for a search of it a new one.
 */
static mdns_result_t *result_for(mdns_search_once_t *search, const char *name, uint16_t record,
                                 uint32_t ttl_s) {
    mdns_result_t *result = of_instance(search, name);
    if (result == NULL && search->record == record && strcasecmp(search->asked, name) == 0) {
        result = add_result(search, ttl_s);
        if (result != NULL) {
            result->instance_name = mdns_label(name);
        }
    }
    return result;
}

static void take_pointer(mdns_search_once_t *search, const char *to, uint32_t ttl_s) {
    mdns_result_t *result = of_instance(search, to) == NULL && ttl_s > 0 ? add_result(search, ttl_s) : NULL;
    if (result != NULL) {
        result->instance_name = mdns_label(to);
    }
}

static void take_texts(mdns_result_t *result, const uint8_t *data, size_t bytes) {
    size_t count = 0;
    for (size_t at = 0; at < bytes && at + 1 + data[at] <= bytes; at += 1u + data[at]) {
        count += data[at] > 0; /* an empty one says that there is none */
    }
    if (result->txt != NULL || count == 0) {
        return;
    }
    result->txt = calloc(count, sizeof *result->txt);
    result->txt_value_len = calloc(count, sizeof *result->txt_value_len);
    for (size_t at = 0; result->txt != NULL && result->txt_value_len != NULL && result->txt_count < count;
         at += 1u + data[at]) {
        if (data[at] == 0) {
            continue;
        }
        char *key = strndup((const char *)data + at + 1, data[at]);
        char *equals = key != NULL ? strchr(key, '=') : NULL;
        if (equals != NULL) {
            *equals = '\0';
            result->txt[result->txt_count].value = strdup(equals + 1);
            result->txt_value_len[result->txt_count] = (uint8_t)(data[at] - (equals - key) - 1);
        }
        result->txt[result->txt_count++].key = key;
    }
}

static void take_address(mdns_result_t *result, const uint8_t *data) {
    esp_ip_addr_t address = {.type = ESP_IPADDR_TYPE_V4};
    memcpy(&address.u_addr.ip4.addr, data, sizeof address.u_addr.ip4.addr);
    mdns_ip_addr_t **at = &result->addr;
    while (*at != NULL) {
        if ((*at)->addr.u_addr.ip4.addr == address.u_addr.ip4.addr) {
            return;
        }
        at = &(*at)->next;
    }
    *at = calloc(1, sizeof **at);
    if (*at != NULL) {
        (*at)->addr = address;
    }
}

static void take_addresses(mdns_search_once_t *search, const char *name, const uint8_t *data,
                           uint32_t ttl_s) {
    char host[NS_MAXDNAME];
    if (search->record == MDNS_TYPE_A && strcasecmp(search->asked, name) == 0) {
        mdns_result_t *result = search->results != NULL ? search->results : add_result(search, ttl_s);
        if (result != NULL) {
            result->hostname = result->hostname != NULL ? result->hostname : mdns_label(name);
            take_address(result, data);
        }
        return;
    }
    for (mdns_result_t *result = search->results; result != NULL; result = result->next) {
        if (result->hostname != NULL && mdns_name(host, result->hostname, NULL, NULL) &&
            strcasecmp(host, name) == 0) {
            take_address(result, data);
        }
    }
}

static void take_record(mdns_search_once_t *search, ns_msg *answer, const ns_rr *record, uint16_t kind) {
    const uint8_t *data = ns_rr_rdata(*record);
    const char *name = ns_rr_name(*record);
    char to[NS_MAXDNAME] = "";
    size_t skipped = kind == ns_t_srv ? 6 : 0;
    if ((kind == ns_t_ptr || kind == ns_t_srv) &&
        (ns_rr_rdlen(*record) <= skipped ||
         ns_name_uncompress(ns_msg_base(*answer), ns_msg_end(*answer), data + skipped, to, sizeof to) < 0)) {
        return;
    }
    mdns_result_t *result =
        kind == ns_t_srv || kind == ns_t_txt ? result_for(search, name, kind, ns_rr_ttl(*record)) : NULL;
    if (kind == ns_t_ptr && search->record == ns_t_ptr && strcasecmp(name, search->asked) == 0) {
        take_pointer(search, to, ns_rr_ttl(*record));
    } else if (kind == ns_t_srv && result != NULL && result->hostname == NULL) {
        result->hostname = mdns_label(to);
        result->port = (uint16_t)ns_get16(data + 4);
    } else if (kind == ns_t_txt && result != NULL) {
        take_texts(result, data, ns_rr_rdlen(*record));
    } else if (kind == ns_t_a && ns_rr_rdlen(*record) == 4) {
        take_addresses(search, name, data, ns_rr_ttl(*record));
    }
}

/* Kind by kind: an address may stand before the name that leads to it. */
void mdns_searches_take(ns_msg *answer) {
    static const uint16_t kinds[] = {ns_t_ptr, ns_t_srv, ns_t_txt, ns_t_a};
    for (mdns_search_once_t *search = s_searches; search != NULL; search = search->next) {
        size_t found = result_count(search);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !search->ended; k++) {
            for (int section = ns_s_an; section <= ns_s_ar; section++) {
                for (int i = 0; i < ns_msg_count(*answer, section); i++) {
                    ns_rr record;
                    if (ns_parserr(answer, section, i, &record) == 0 && ns_rr_type(record) == kinds[k]) {
                        take_record(search, answer, &record, kinds[k]);
                    }
                }
            }
        }
        if (!search->ended && is_satisfied(search)) {
            end(search);
        } else if (result_count(search) > found) { /* what they lack is asked for at once */
            search->ask_us = 0;
        }
    }
}

void mdns_query_results_free(mdns_result_t *results) {
    while (results != NULL) {
        mdns_result_t *result = results;
        results = result->next;
        for (size_t i = 0; i < result->txt_count; i++) {
            free((void *)(uintptr_t)result->txt[i].key);
            free((void *)(uintptr_t)result->txt[i].value);
        }
        while (result->addr != NULL) {
            mdns_ip_addr_t *address = result->addr;
            result->addr = address->next;
            free(address);
        }
        free(result->txt);
        free(result->txt_value_len);
        free(result->instance_name);
        free(result->service_type);
        free(result->proto);
        free(result->hostname);
        free(result);
    }
}

static void free_search(mdns_search_once_t *search) {
    mdns_query_results_free(search->results);
    if (search->done != NULL) {
        vSemaphoreDelete(search->done);
    }
    free(search->type);
    free(search->proto);
    free(search);
}

mdns_search_once_t *mdns_query_async_new(const char *name, const char *service_type, const char *proto,
                                         uint16_t type, uint32_t timeout, size_t max_results,
                                         mdns_query_notify_t notifier) {
    mdns_search_once_t *search = calloc(1, sizeof *search);
    if (search == NULL || !mdns_name(search->asked, name, service_type, proto) || !mdns_lock()) {
        free(search);
        return NULL;
    }
    search->type = service_type != NULL ? strdup(service_type) : NULL;
    search->proto = proto != NULL ? strdup(proto) : NULL;
    search->record = type;
    search->until_us = esp_timer_get_time() + (int64_t)timeout * 1000;
    search->pause_us = 1000000;
    search->max_results = max_results;
    search->notify = notifier;
    search->done = xSemaphoreCreateBinary();
    if (search->done != NULL) {
        search->next = s_searches;
        s_searches = search;
    }
    mdns_unlock();
    if (search->done == NULL) {
        free_search(search);
        return NULL;
    }
    return search;
}

bool mdns_query_async_get_results(mdns_search_once_t *search, uint32_t timeout, mdns_result_t **results,
                                  uint8_t *num_results) {
    if (search == NULL || results == NULL || xSemaphoreTake(search->done, pdMS_TO_TICKS(timeout)) != pdTRUE) {
        return false;
    }
    mdns_lock();
    if (num_results != NULL) {
        *num_results = (uint8_t)result_count(search);
    }
    *results = search->results; /* the caller's now */
    search->results = NULL;
    mdns_unlock();
    return true;
}

esp_err_t mdns_query_async_delete(mdns_search_once_t *search) {
    if (search == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!mdns_lock()) {
        return ESP_ERR_INVALID_STATE;
    }
    mdns_search_once_t **at = &s_searches;
    while (*at != NULL && *at != search) {
        at = &(*at)->next;
    }
    bool ended = search->ended;
    if (ended && *at != NULL) {
        *at = search->next;
        free_search(search);
    }
    mdns_unlock();
    return ended ? ESP_OK : ESP_ERR_INVALID_STATE;
}

esp_err_t mdns_query_generic(const char *name, const char *service_type, const char *proto, uint16_t type,
                             mdns_query_transmission_type_t transmission_type, uint32_t timeout,
                             size_t max_results, mdns_result_t **results) {
    (void)transmission_type; /* all are answered by multicast */
    if (results == NULL || timeout == 0 || (service_type == NULL) != (proto == NULL) ||
        (name == NULL && service_type == NULL)) {
        return ESP_ERR_INVALID_ARG;
    }
    *results = NULL;
    if (!mdns_lock()) {
        return ESP_ERR_INVALID_STATE;
    }
    mdns_unlock();
    mdns_search_once_t *search =
        mdns_query_async_new(name, service_type, proto, type, timeout, max_results, NULL);
    if (search == NULL) {
        return ESP_ERR_NO_MEM;
    }
    while (!mdns_query_async_get_results(search, 1000, results, NULL)) {
    }
    return mdns_query_async_delete(search);
}

esp_err_t mdns_query(const char *name, const char *service_type, const char *proto, uint16_t type,
                     uint32_t timeout, size_t max_results, mdns_result_t **results) {
    return mdns_query_generic(name, service_type, proto, type, MDNS_QUERY_MULTICAST, timeout, max_results,
                              results);
}

esp_err_t mdns_query_ptr(const char *service_type, const char *proto, uint32_t timeout, size_t max_results,
                         mdns_result_t **results) {
    bool named = service_type != NULL && service_type[0] != '\0' && proto != NULL && proto[0] != '\0';
    return !named ? ESP_ERR_INVALID_ARG
                  : mdns_query(NULL, service_type, proto, MDNS_TYPE_PTR, timeout, max_results, results);
}

static esp_err_t query_instance(const char *instance, const char *type, const char *proto, uint16_t record,
                                uint32_t timeout, mdns_result_t **result) {
    bool named = instance != NULL && instance[0] != '\0' && type != NULL && proto != NULL;
    return !named ? ESP_ERR_INVALID_ARG : mdns_query(instance, type, proto, record, timeout, 1, result);
}

esp_err_t mdns_query_srv(const char *instance_name, const char *service_type, const char *proto,
                         uint32_t timeout, mdns_result_t **result) {
    return query_instance(instance_name, service_type, proto, MDNS_TYPE_SRV, timeout, result);
}

esp_err_t mdns_query_txt(const char *instance_name, const char *service_type, const char *proto,
                         uint32_t timeout, mdns_result_t **result) {
    return query_instance(instance_name, service_type, proto, MDNS_TYPE_TXT, timeout, result);
}

esp_err_t mdns_query_a(const char *host_name, uint32_t timeout, esp_ip4_addr_t *addr) {
    mdns_result_t *result = NULL;
    if (host_name == NULL || host_name[0] == '\0' || addr == NULL || strstr(host_name, ".local") != NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t found = mdns_query(host_name, NULL, NULL, MDNS_TYPE_A, timeout, 1, &result);
    if (found == ESP_OK && (result == NULL || result->addr == NULL)) {
        found = ESP_ERR_NOT_FOUND;
    }
    if (found == ESP_OK) {
        addr->addr = result->addr->addr.u_addr.ip4.addr;
    }
    mdns_query_results_free(result);
    return found;
}
