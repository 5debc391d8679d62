/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the provisioned field `link`: which link a board has, and how it is wired.
 *
 * Plain C, so that it is tested on the host. docs/reference/provisioning.md lists the words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { LINK_WIFI, LINK_OPENETH, LINK_RMII, LINK_W5500 } link_type_t;

/* In the order in which they are told apart; LINK_PHY_GENERIC keeps to IEEE 802.3 alone. */
typedef enum {
    LINK_PHY_GENERIC,
    LINK_PHY_LAN87XX,
    LINK_PHY_IP101,
    LINK_PHY_RTL8201,
    LINK_PHY_DP83848,
    LINK_PHY_KSZ80XX,
} link_phy_t;

/* Numbers that end in _gpio are GPIOs; a reset_gpio of -1: none. IPv4 addresses are in their written order.
 */
typedef struct {
    link_type_t type;
    int32_t phy; /* link_phy_t */
    int32_t phy_address;
    int32_t mdc_gpio, mdio_gpio, reset_gpio;
    int32_t clock_out; /* 1: the chip gives the PHY its clock, 0: it takes it */
    int32_t clock_gpio;
    int32_t spi_host, sclk_gpio, mosi_gpio, miso_gpio, cs_gpio, int_gpio, spi_mhz;
    uint8_t address[4];
    uint8_t gateway[4];
    int32_t prefix; /* bits of the network's part; 0: the address comes by DHCP */
    uint8_t mac[6];
    bool has_mac;
} link_words_t;

enum { LINK_FAULT_SIZE = 96 };

/* The type's name, as it is written. */
const char *link_type_name(link_type_t type);

/* Take a text apart; an empty one is Wi-Fi. Returns false for a wrong one, and a sentence that names the
 * word. */
bool link_words_parse(const char *text, link_words_t *words, char fault[LINK_FAULT_SIZE]);
