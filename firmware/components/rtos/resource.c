#include "rtos/resource.h"

SemaphoreHandle_t rtos_resource_create(void) {
    return xSemaphoreCreateMutex();
}
