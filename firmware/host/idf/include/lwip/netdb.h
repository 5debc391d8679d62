#pragma once
#include <netdb.h>

#include "lwip/sockets.h"
