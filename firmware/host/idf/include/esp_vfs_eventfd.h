/* SPDX-License-Identifier: Apache-2.0 */
/* Linux's event descriptors under ESP-IDF's name. Reading one that nobody has written to is an error
 * (EAGAIN), where a chip reads 0. */
#pragma once
#include <stddef.h>

#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EFD_SUPPORT_ISR (1 << 4)

typedef struct {
    size_t max_fds; /* not counted */
} esp_vfs_eventfd_config_t;

#define ESP_VFS_EVENTD_CONFIG_DEFAULT() (esp_vfs_eventfd_config_t){.max_fds = 5};

esp_err_t esp_vfs_eventfd_register(const esp_vfs_eventfd_config_t *config);
esp_err_t esp_vfs_eventfd_unregister(void);

#define eventfd(initval, flags) vboard_eventfd(initval, flags)
int vboard_eventfd(unsigned initval, int flags);

#ifdef __cplusplus
}
#endif
