/* The agent: console commands, the registry of benches, the sample buffer, the only printer of records. */
#pragma once

#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Start the console and the tasks of the agent and say hello. Call it once, from app_main(). */
esp_err_t agent_start(void);

#ifdef __cplusplus
}
#endif
