#pragma once
#include "esp_wifi.h"
