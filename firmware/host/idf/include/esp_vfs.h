/* SPDX-License-Identifier: Apache-2.0 */
/* Files are the host's; what esp_vfs_register() would add to them is not there. */
#pragma once
#include <fcntl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "esp_err.h"
