/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/eventfd.h>

#include "esp_vfs_eventfd.h"

static atomic_bool s_registered;

esp_err_t esp_vfs_eventfd_register(const esp_vfs_eventfd_config_t *config) {
    if (config == NULL || config->max_fds == 0) {
        return ESP_ERR_INVALID_ARG;
    }
    return atomic_exchange(&s_registered, true) ? ESP_ERR_INVALID_STATE : ESP_OK;
}

esp_err_t esp_vfs_eventfd_unregister(void) {
    return atomic_exchange(&s_registered, false) ? ESP_OK : ESP_ERR_INVALID_STATE;
}

#undef eventfd
int vboard_eventfd(unsigned initval, int flags) {
    if ((flags & ~EFD_SUPPORT_ISR) != 0) {
        errno = EINVAL;
        return -1;
    }
    if (!s_registered) {
        errno = EPERM;
        return -1;
    }
    return eventfd(initval, EFD_NONBLOCK | EFD_CLOEXEC);
}
