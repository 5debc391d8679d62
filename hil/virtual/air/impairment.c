/* SPDX-License-Identifier: Apache-2.0 */
#include "impairment.h"

#include <math.h>

#define STREAMS_PER_DIRECTION 8u
#define US 1000u

const impairment_t IMPAIRMENT_DEFAULT = {
    .limit_bytes = 256 * 1024, .keep_order = 1, .burst_end_ppm = PPM, .burst_loss_ppm = PPM};

/* splitmix64: one addition and a mix a number, every state is good. */
uint64_t random_next(random_t *random) {
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double random_unit(random_t *random) {
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

bool random_hit(random_t *random, uint64_t ppm) {
    return ppm > 0 && random_next(random) % PPM < ppm;
}

random_t random_stream(uint64_t seed, const char *link, unsigned stream) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = link; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
    }
    random_t mixer = {.state = seed ^ hash};
    random_t result = {.state = random_next(&mixer) + stream};
    result.state = random_next(&result);
    return result;
}

/* Box-Muller; the second value is thrown away so that one jitter takes a fixed number of draws. */
static double random_normal(random_t *random) {
    double radius = sqrt(-2.0 * log(1.0 - random_unit(random)));
    return radius * cos(2.0 * M_PI * random_unit(random));
}

void impairment_seed(impairment_state_t *state, uint64_t seed, const char *link, unsigned direction) {
    unsigned first = direction * STREAMS_PER_DIRECTION;
    *state = (impairment_state_t){
        .loss = random_stream(seed, link, first),
        .burst = random_stream(seed, link, first + 1),
        .duplicate = random_stream(seed, link, first + 2),
        .reorder = random_stream(seed, link, first + 3),
        .jitter = random_stream(seed, link, first + 4),
    };
}

static bool burst_loses(const impairment_t *impairment, impairment_state_t *state) {
    if (impairment->burst_start_ppm == 0) {
        state->in_burst = false;
        return false;
    }
    uint64_t change_ppm = state->in_burst ? impairment->burst_end_ppm : impairment->burst_start_ppm;
    if (random_hit(&state->burst, change_ppm)) {
        state->in_burst = !state->in_burst;
    }
    return random_hit(&state->burst,
                      state->in_burst ? impairment->burst_loss_ppm : impairment->burst_good_loss_ppm);
}

loss_t impairment_loss(const impairment_t *impairment, impairment_state_t *state) {
    bool random = random_hit(&state->loss, impairment->loss_ppm);
    bool burst = burst_loses(impairment, state);
    return random ? LOSS_RANDOM : burst ? LOSS_BURST : LOSS_NONE;
}

/* A first-order autoregressive normal series keeps mean and spread whatever the correlation; a uniform
 * jitter is that series through the normal distribution function. */
static double jitter_unit(const impairment_t *impairment, impairment_state_t *state) {
    double rho = (double)impairment->correlation_ppm / PPM;
    double z = rho * state->jitter_memory + sqrt(1.0 - rho * rho) * random_normal(&state->jitter);
    state->jitter_memory = z;
    return impairment->distribution == DISTRIBUTION_NORMAL ? z : erf(z / M_SQRT2);
}

uint64_t impairment_delay_ns(const impairment_t *impairment, impairment_state_t *state) {
    uint64_t delay_ns = impairment->delay_us * US;
    if (impairment->jitter_us == 0) {
        return delay_ns;
    }
    double jittered_ns =
        (double)delay_ns + jitter_unit(impairment, state) * (double)(impairment->jitter_us * US);
    return jittered_ns > 0.0 ? (uint64_t)jittered_ns : 0;
}

uint64_t impairment_airtime_ns(const impairment_t *impairment, uint64_t frame_bytes) {
    if (impairment->rate_kbit == 0) {
        return 0;
    }
    return (frame_bytes + impairment->overhead_bytes) * 8 * 1000000 / impairment->rate_kbit;
}

static void gap_draw(gap_t *gap, uint64_t from_ns) {
    const gap_parameters_t *p = &gap->parameters;
    double pause_us = -log(1.0 - random_unit(&gap->random)) * (double)p->interval_us;
    double length_us = (double)p->min_us + random_unit(&gap->random) * (double)(p->max_us - p->min_us);
    gap->start_ns = from_ns + (uint64_t)(pause_us * US);
    gap->end_ns = gap->start_ns + (uint64_t)(length_us * US);
}

void gap_configure(gap_t *gap, const gap_parameters_t *parameters, uint64_t now_ns) {
    gap->parameters = *parameters;
    gap->start_ns = gap->end_ns = 0;
    if (parameters->interval_us > 0) {
        gap_draw(gap, now_ns);
    }
}

uint64_t gap_end_ns(gap_t *gap, uint64_t at_ns) {
    if (gap->parameters.interval_us == 0) {
        return 0;
    }
    while (gap->end_ns <= at_ns) {
        gap_draw(gap, gap->end_ns);
    }
    return gap->start_ns <= at_ns ? gap->end_ns : 0;
}
