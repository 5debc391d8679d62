/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's table of names: four, each as long as its server said, the oldest makes room. */
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "esp_timer.h"
#include "resolver.h"

#define MAX_TTL_S 604800 /* lwIP's DNS_MAX_TTL */

typedef struct {
    char name[DNS_MAX_NAME_LENGTH + 1];
    struct in_addr address;
    int64_t added_us;
    int64_t expires_us;
} entry_t;

static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static entry_t s_entries[DNS_TABLE_SIZE];

static entry_t *find(const char *name) {
    for (entry_t *entry = s_entries; entry < s_entries + DNS_TABLE_SIZE; entry++) {
        if (strcasecmp(entry->name, name) == 0) {
            return entry;
        }
    }
    return NULL;
}

static entry_t *oldest(void) {
    entry_t *found = s_entries;
    for (entry_t *entry = s_entries; entry < s_entries + DNS_TABLE_SIZE; entry++) {
        found = entry->added_us < found->added_us ? entry : found;
    }
    return found;
}

bool table_find(const char *name, struct in_addr *address) {
    pthread_mutex_lock(&s_lock);
    const entry_t *entry = find(name);
    bool valid = entry != NULL && esp_timer_get_time() < entry->expires_us;
    if (valid) {
        *address = entry->address;
    }
    pthread_mutex_unlock(&s_lock);
    return valid;
}

void table_add(const char *name, struct in_addr address, uint32_t ttl_s) {
    int64_t now_us = esp_timer_get_time();
    pthread_mutex_lock(&s_lock);
    entry_t *entry = find(name);
    entry = entry != NULL ? entry : oldest();
    strncpy(entry->name, name, DNS_MAX_NAME_LENGTH);
    entry->address = address;
    entry->added_us = now_us;
    entry->expires_us = now_us + (int64_t)(ttl_s < MAX_TTL_S ? ttl_s : MAX_TTL_S) * 1000000;
    pthread_mutex_unlock(&s_lock);
}
