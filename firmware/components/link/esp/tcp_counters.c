/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's TCP. Its control blocks are the tcpip thread's: they are looked at in it (tcpip_api_call(), which
 * takes the core lock instead where CONFIG_LWIP_TCPIP_CORE_LOCKING is set). */
#include "link/tcp_counters.h"

#include "lwip/priv/tcp_priv.h"
#include "lwip/priv/tcpip_priv.h"
#include "lwip/sockets.h"
#include "lwip/stats.h"
#include "lwip/tcp.h"

typedef struct {
    struct tcpip_api_call_data call; /* first: it is what the thread is given */
    uint16_t local_port;
    link_tcp_counters_t *counters;
} question_t;

static const struct tcp_pcb *find(uint16_t local_port) {
    const struct tcp_pcb *pcb = tcp_active_pcbs;
    while (pcb != NULL && pcb->local_port != local_port) {
        pcb = pcb->next;
    }
    return pcb;
}

/* `sa` is eight times the smoothed round trip, both in ticks of the slow timer. How often segments were sent
 * again is counted for all connections together: link_tcp_totals(). */
static err_t answer(struct tcpip_api_call_data *call) {
    const question_t *question = (const question_t *)(const void *)call;
    const struct tcp_pcb *pcb = find(question->local_port);
    if (pcb == NULL) {
        return ERR_CONN;
    }
    *question->counters = (link_tcp_counters_t){
        .written = pcb->snd_lbb,
        .unsent_bytes = pcb->snd_lbb - pcb->snd_nxt,
        .unacked_bytes = pcb->snd_lbb - pcb->lastack,
        .retransmits = -1,
        .rto_us = (int64_t)pcb->rto * TCP_SLOW_INTERVAL * 1000,
        .srtt_us = (int64_t)(pcb->sa >> 3) * TCP_SLOW_INTERVAL * 1000,
        .cwnd_bytes = pcb->cwnd,
    };
    return ERR_OK;
}

static uint16_t local_port_of(int socket_fd) {
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    if (getsockname(socket_fd, (struct sockaddr *)&address, &size) != 0) {
        return 0;
    }
    const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)&address;
    return address.ss_family == AF_INET ? ntohs(ipv4->sin_port) : 0;
}

esp_err_t link_tcp_counters(int socket_fd, link_tcp_counters_t *counters) {
    question_t question = {.local_port = local_port_of(socket_fd), .counters = counters};
    if (question.local_port == 0 || tcpip_api_call(answer, &question.call) != ERR_OK) {
        return ESP_ERR_NOT_FOUND; /* one that was reset is forgotten at once, so `ended` is never seen here */
    }
    return ESP_OK;
}

esp_err_t link_tcp_totals(link_tcp_totals_t *totals) {
#if LWIP_STATS && MIB2_STATS
    *totals = (link_tcp_totals_t){
        .xmit = lwip_stats.tcp.xmit,
        .drop = lwip_stats.tcp.drop,
        .memerr = lwip_stats.tcp.memerr,
        .retransmits = lwip_stats.mib2.tcpretranssegs,
    };
    return ESP_OK;
#else /* a product's lwIP counts as the product says */
    (void)totals;
    return ESP_ERR_NOT_SUPPORTED;
#endif
}
