/* SPDX-License-Identifier: Apache-2.0 */
#include "ethernet_driver.h"

#include "driver/gpio.h"
#include "driver/spi_master.h"
#include "esp_check.h"
#include "esp_eth.h"
#include "esp_idf_version.h"
#include "esp_log.h"
#include "soc/soc.h"
#include "soc/soc_caps.h"

/* Up to v5.5 all drivers are esp_eth's; from v6.0 on those of one vendor are components of their own. */
#if ESP_IDF_VERSION >= ESP_IDF_VERSION_VAL(6, 0, 0)
#include "esp_eth_mac_w5500.h"
#include "esp_eth_phy_w5500.h"
#if SOC_EMAC_SUPPORTED
#include "esp_eth_phy_dp83848.h"
#include "esp_eth_phy_ip101.h"
#include "esp_eth_phy_ksz80xx.h"
#include "esp_eth_phy_lan87xx.h"
#include "esp_eth_phy_rtl8201.h"
#endif
#endif

static const char *TAG = "ethernet";

/* As esp_eth has it in a header of its own: an emulator puts the controller where a chip has its EMAC, or has
 * nothing. */
#ifndef DR_REG_EMAC_BASE
#define DR_REG_EMAC_BASE 0x600CD000
#endif
enum { OPENETH_MODE_AFTER_RESET = 0xa000, OPENETH_NEGOTIATION_MS = 100, W5500_QUEUE = 20 };

static eth_phy_config_t phy_config(const link_words_t *words) {
    eth_phy_config_t config = ETH_PHY_DEFAULT_CONFIG();
    config.phy_addr = words->phy_address;
    config.reset_gpio_num = words->reset_gpio;
    return config;
}

static esp_err_t not_supported(const char *name) {
    ESP_LOGE(TAG, "%s: " CONFIG_IDF_TARGET " has no such controller", name);
    return ESP_ERR_NOT_SUPPORTED;
}

/* esp_eth ends the program where the registers are not the emulator's; so they are looked at here first. */
static esp_err_t new_openeth(const link_words_t *words, ethernet_parts_t *parts) {
    if (REG_READ(DR_REG_EMAC_BASE) != OPENETH_MODE_AFTER_RESET) {
        ESP_LOGE(TAG, "openeth: this is no emulated board");
        return ESP_ERR_NOT_SUPPORTED;
    }
    eth_mac_config_t mac = ETH_MAC_DEFAULT_CONFIG();
    eth_phy_config_t phy = phy_config(words);
    phy.phy_addr = ESP_ETH_PHY_ADDR_AUTO;
    phy.autonego_timeout_ms = OPENETH_NEGOTIATION_MS;
    parts->mac = esp_eth_mac_new_openeth(&mac);
#if ESP_IDF_VERSION >= ESP_IDF_VERSION_VAL(6, 0, 0)
    parts->phy = esp_eth_phy_new_generic(&phy);
#else
    parts->phy = esp_eth_phy_new_dp83848(&phy);
#endif
    return ESP_OK;
}

#if SOC_EMAC_SUPPORTED
static esp_eth_phy_t *new_rmii_phy(link_phy_t type, const eth_phy_config_t *config) {
    switch (type) {
    case LINK_PHY_LAN87XX:
        return esp_eth_phy_new_lan87xx(config);
    case LINK_PHY_IP101:
        return esp_eth_phy_new_ip101(config);
    case LINK_PHY_RTL8201:
        return esp_eth_phy_new_rtl8201(config);
    case LINK_PHY_DP83848:
        return esp_eth_phy_new_dp83848(config);
    case LINK_PHY_KSZ80XX:
        return esp_eth_phy_new_ksz80xx(config);
    default:
        return esp_eth_phy_new_generic(config);
    }
}

static esp_err_t new_rmii(const link_words_t *words, ethernet_parts_t *parts) {
    eth_mac_config_t mac = ETH_MAC_DEFAULT_CONFIG();
    eth_esp32_emac_config_t emac = ETH_ESP32_EMAC_DEFAULT_CONFIG();
    eth_phy_config_t phy = phy_config(words);
    emac.smi_gpio.mdc_num = words->mdc_gpio;
    emac.smi_gpio.mdio_num = words->mdio_gpio;
    emac.clock_config.rmii.clock_mode = words->clock_out ? EMAC_CLK_OUT : EMAC_CLK_EXT_IN;
    emac.clock_config.rmii.clock_gpio = words->clock_gpio;
    parts->mac = esp_eth_mac_new_esp32(&emac, &mac);
    parts->phy = new_rmii_phy((link_phy_t)words->phy, &phy);
    return ESP_OK;
}
#else
static esp_err_t new_rmii(const link_words_t *words, ethernet_parts_t *parts) {
    (void)words, (void)parts;
    return not_supported("rmii");
}
#endif

/* Once; after a failure what was done stays. */
static esp_err_t init_bus(const link_words_t *words) {
    static bool done;
    spi_bus_config_t bus = {
        .mosi_io_num = words->mosi_gpio,
        .miso_io_num = words->miso_gpio,
        .sclk_io_num = words->sclk_gpio,
        .quadwp_io_num = -1,
        .quadhd_io_num = -1,
    };
    esp_err_t err = gpio_install_isr_service(0);
    if (done || (err != ESP_OK && err != ESP_ERR_INVALID_STATE)) { /* that it is installed already */
        return done ? ESP_OK : err;
    }
    ESP_RETURN_ON_ERROR(spi_bus_initialize((spi_host_device_t)words->spi_host, &bus, SPI_DMA_CH_AUTO), TAG,
                        "SPI bus");
    done = true;
    return ESP_OK;
}

static esp_err_t new_w5500(const link_words_t *words, ethernet_parts_t *parts) {
    if (words->spi_host >= SPI_HOST_MAX) {
        return not_supported("w5500: SPI host");
    }
    ESP_RETURN_ON_ERROR(init_bus(words), TAG, "w5500");
    spi_device_interface_config_t device = {
        .clock_speed_hz = words->spi_mhz * 1000000,
        .spics_io_num = words->cs_gpio,
        .queue_size = W5500_QUEUE,
    };
    eth_mac_config_t mac = ETH_MAC_DEFAULT_CONFIG();
    eth_phy_config_t phy = phy_config(words);
    phy.phy_addr = 1; /* its own, on no bus */
    eth_w5500_config_t config = ETH_W5500_DEFAULT_CONFIG((spi_host_device_t)words->spi_host, &device);
    config.int_gpio_num = words->int_gpio;
    parts->mac = esp_eth_mac_new_w5500(&config, &mac);
    parts->phy = esp_eth_phy_new_w5500(&phy);
    return ESP_OK;
}

esp_err_t ethernet_parts_new(const link_words_t *words, ethernet_parts_t *parts) {
    *parts = (ethernet_parts_t){0};
    esp_err_t err = words->type == LINK_OPENETH ? new_openeth(words, parts)
                    : words->type == LINK_RMII  ? new_rmii(words, parts)
                                                : new_w5500(words, parts);
    if (err == ESP_OK && (parts->mac == NULL || parts->phy == NULL)) {
        ethernet_parts_delete(parts);
        err = ESP_FAIL; /* the driver has said why */
    }
    return err;
}

void ethernet_parts_delete(ethernet_parts_t *parts) {
    if (parts->mac != NULL) {
        parts->mac->del(parts->mac);
    }
    if (parts->phy != NULL) {
        parts->phy->del(parts->phy);
    }
    *parts = (ethernet_parts_t){0};
}
