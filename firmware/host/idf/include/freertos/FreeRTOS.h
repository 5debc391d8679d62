/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS of ESP-IDF (10.5.1, two cores) on POSIX threads. docs/explain/host-idf.md says what differs. */
#pragma once
#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_attr.h"
#include "esp_err.h"
#include "esp_heap_caps.h"
#include "freertos/FreeRTOSConfig.h"
#include "freertos/portmacro.h"
#include "freertos/projdefs.h"

#define INC_FREERTOS_H

#define configASSERT(x) assert(x)

/* Storage for the …Static constructors; sizes are checked where the objects are defined. A static task's
 * stack buffer is not used: threads need host-sized stacks. */
typedef struct {
    alignas(16) unsigned char opaque[192];
} StaticQueue_t;
typedef StaticQueue_t StaticSemaphore_t;
typedef struct {
    alignas(16) unsigned char opaque[64];
} StaticEventGroup_t;
typedef struct {
    alignas(16) unsigned char opaque[16];
} StaticTask_t;
typedef struct {
    alignas(16) unsigned char opaque[80];
} StaticTimer_t;
typedef struct {
    alignas(16) unsigned char opaque[112];
} StaticStreamBuffer_t;
