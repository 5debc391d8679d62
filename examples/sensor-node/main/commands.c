/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <stddef.h>
#include <string.h>

#include "cJSON.h"
#include "node_log.h"
#include "ota.h"
#include "uplink.h"

void commands_reply(int id, const char *error) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "id", id);
    cJSON_AddBoolToObject(json, "ok", error == NULL);
    if (error != NULL) {
        cJSON_AddStringToObject(json, "error", error);
    }
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    if (text != NULL) {
        uplink_reply(text);
        cJSON_free(text);
    }
}

static const char *set_period(const cJSON *command) {
    const cJSON *ms = cJSON_GetObjectItemCaseSensitive(command, "ms");
    bool done = cJSON_IsNumber(ms) && ms->valueint > 0 && uplink_set_period((uint32_t)ms->valueint);
    return done ? NULL : "ms is not from 10 to 3600000";
}

static void finish(int id, const char *op, const char *error) {
    node_log("cmd", "id=%d op=%s %s", id, op, error == NULL ? "ok" : error);
    commands_reply(id, error);
}

static void obey(const cJSON *command, int id, const char *op) {
    if (strcmp(op, "ping") == 0) {
        finish(id, op, NULL);
    } else if (strcmp(op, "period") == 0) {
        finish(id, op, set_period(command));
    } else if (strcmp(op, "ota") == 0) {
        const cJSON *url = cJSON_GetObjectItemCaseSensitive(command, "url");
        const char *error = ota_start(id, cJSON_GetStringValue(url));
        if (error != NULL) { /* else it replies itself, when it is done */
            finish(id, op, error);
        }
    } else {
        finish(id, op, "unknown op");
    }
}

void commands_handle(const char *json, int bytes) {
    cJSON *command = cJSON_ParseWithLength(json, (size_t)bytes);
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(command, "id");
    const char *op = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(command, "op"));
    if (cJSON_IsNumber(id) && op != NULL) {
        obey(command, id->valueint, op);
    } else {
        node_log("cmd", "not understood: %.*s", bytes, json);
    }
    cJSON_Delete(command);
}
