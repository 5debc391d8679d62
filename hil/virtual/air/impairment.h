/* SPDX-License-Identifier: Apache-2.0 */
/* What the air does to a frame: pure arithmetic on parameters, random streams and time; no sockets here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum { DISTRIBUTION_UNIFORM, DISTRIBUTION_NORMAL } distribution_t;
typedef enum { GAP_HOLD, GAP_DROP } gap_mode_t;

#define PPM 1000000u

/* Parameters of one direction; all uint64_t so that one table (control.c) reads, checks and shows them. */
typedef struct {
    uint64_t rate_kbit;      /* kbit/s; 0 = unlimited */
    uint64_t overhead_bytes; /* added to every frame's length when its time on the air is computed */
    uint64_t delay_us;
    uint64_t jitter_us;    /* uniform: half width; normal: standard deviation */
    uint64_t distribution; /* distribution_t */
    uint64_t correlation_ppm;
    uint64_t loss_ppm;
    uint64_t burst_start_ppm;     /* Gilbert-Elliott: good -> bad, per frame; 0 = off */
    uint64_t burst_end_ppm;       /* bad -> good, per frame */
    uint64_t burst_loss_ppm;      /* loss in the bad state */
    uint64_t burst_good_loss_ppm; /* loss in the good state */
    uint64_t duplicate_ppm;
    uint64_t reorder_ppm;
    uint64_t limit_bytes; /* backlog waiting for the transmitter; 0 = unlimited */
    uint64_t keep_order;  /* 1: no frame overtakes another, `reorder` apart */
} impairment_t;

/* Blackouts of a whole link (both directions), as a phone's hotspot makes them. */
typedef struct {
    uint64_t interval_us; /* mean pause between two gaps, exponentially distributed; 0 = off */
    uint64_t min_us;
    uint64_t max_us;
    uint64_t mode; /* gap_mode_t */
} gap_parameters_t;

typedef struct {
    uint64_t state;
} random_t;

/* One random stream per decision: how many frames are lost does not change which ones are delayed. */
typedef struct {
    random_t loss, burst, duplicate, reorder, jitter;
    bool in_burst;
    double jitter_memory;
} impairment_state_t;

typedef struct {
    gap_parameters_t parameters;
    random_t random;
    uint64_t start_ns;
    uint64_t end_ns;
} gap_t;

typedef enum { LOSS_NONE, LOSS_RANDOM, LOSS_BURST } loss_t;

uint64_t random_next(random_t *random);
double random_unit(random_t *random); /* [0, 1) */
bool random_hit(random_t *random, uint64_t ppm);
/* Derive a stream from the air's seed, the link's name and a stream number: stable whatever other links
 * exist. */
random_t random_stream(uint64_t seed, const char *link, unsigned stream);

extern const impairment_t IMPAIRMENT_DEFAULT;

void impairment_seed(impairment_state_t *state, uint64_t seed, const char *link, unsigned direction);
loss_t impairment_loss(const impairment_t *impairment, impairment_state_t *state);
/* Delay plus jitter of one frame, never below 0. */
uint64_t impairment_delay_ns(const impairment_t *impairment, impairment_state_t *state);
uint64_t impairment_airtime_ns(const impairment_t *impairment, uint64_t frame_bytes);

void gap_configure(gap_t *gap, const gap_parameters_t *parameters, uint64_t now_ns);
/* When the blackout that covers `at_ns` ends; 0 where there is none. `at_ns` never goes back. */
uint64_t gap_end_ns(gap_t *gap, uint64_t at_ns);
