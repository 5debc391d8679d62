/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "interrupt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../kernel/kernel.h"
#include "panic.h"
#include "vboard.h"
#include "watchdogs.h"

#define STACK_BYTES (256 * 1024) /* locked in memory, so not the 8 MiB that threads have by default */

struct vboard_interrupt {
    vboard_service_t service;
    void *context;
    task_t self; /* what the kernel knows the thread by */
    pthread_t thread;
    uint32_t raised; /* futex word: how often */
    uint32_t served; /* futex word: how many of those the service has seen */
    bool ends;
};

pthread_t interrupt_start_thread(UBaseType_t priority, BaseType_t core, void *(*code)(void *),
                                 void *argument) {
    (void)task_self(); /* chooses the cores' CPUs, if nobody did before */
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    port_fill_attributes(&attributes, port_linux_priority(priority), core);
    pthread_t thread;
    port_before_start();
    int error = pthread_create(&thread, &attributes, code, argument);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        fprintf(stderr, "a thread for core %d's interrupts cannot be made: %s\n", (int)core, strerror(error));
        abort();
    }
    return thread;
}

/* Returns the count of raises to be served: a new one, or the old one when the deadline has passed. */
static uint32_t wait_for_raise(vboard_interrupt_t *interrupt, int64_t deadline_us) {
    uint32_t raised = __atomic_load_n(&interrupt->raised, __ATOMIC_ACQUIRE);
    while (raised == interrupt->served &&
           port_futex_wait(&interrupt->raised, raised, deadline_us) != ETIMEDOUT) {
        raised = __atomic_load_n(&interrupt->raised, __ATOMIC_ACQUIRE);
    }
    return raised;
}

static void become_interrupt(task_t *self) {
    self->tid = gettid();
    self->thread = pthread_self();
    self->thread_known = true;
    task_adopt(self);
}

static void *serve(void *argument) {
    vboard_interrupt_t *interrupt = argument;
    port_started();
    become_interrupt(&interrupt->self);
    watchdogs_add(&interrupt->self);
    int64_t deadline_us = NEVER_US;
    uint32_t raised = wait_for_raise(interrupt, deadline_us);
    while (!__atomic_load_n(&interrupt->ends, __ATOMIC_ACQUIRE)) {
        panic_trap_float();
        port_mask(&interrupt->self);
        deadline_us = interrupt->service(interrupt->context);
        port_unmask(&interrupt->self);
        __atomic_store_n(&interrupt->served, raised, __ATOMIC_RELEASE);
        port_futex_wake(&interrupt->served, INT32_MAX);
        raised = wait_for_raise(interrupt, deadline_us);
    }
    watchdogs_remove(&interrupt->self);
    port_before_end();
    return NULL;
}

vboard_interrupt_t *vboard_interrupt_new(int core, vboard_service_t service, void *context) {
    vboard_interrupt_t *interrupt = calloc(1, sizeof *interrupt);
    if (interrupt == NULL) {
        return NULL;
    }
    interrupt->service = service;
    interrupt->context = context;
    interrupt->self.isr = true;
    interrupt->self.adopted = true;
    interrupt->self.core = core;
    interrupt->self.priority = interrupt->self.base_priority = INTERRUPT_PRIORITY;
    memcpy(interrupt->self.name, "interrupt", sizeof "interrupt");
    interrupt->thread = interrupt_start_thread(INTERRUPT_PRIORITY, core, serve, interrupt);
    return interrupt;
}

void vboard_interrupt_raise(vboard_interrupt_t *interrupt) {
    task_t *self = task_self();
    __atomic_store_n(&self->raising, true, __ATOMIC_RELAXED);
    __atomic_add_fetch(&interrupt->raised, 1, __ATOMIC_ACQ_REL);
    port_futex_wake(&interrupt->raised, 1);
    __atomic_store_n(&self->raising, false, __ATOMIC_RELAXED);
}

/* On the interrupt's own core, with real-time priority, it has run when the wake-up returns. */
void vboard_interrupt_wait(vboard_interrupt_t *interrupt) {
    assert(!xPortInIsrContext());
    task_t *self = task_self();
    __atomic_store_n(&self->raising, true, __ATOMIC_RELAXED);
    uint32_t raised = __atomic_load_n(&interrupt->raised, __ATOMIC_ACQUIRE);
    uint32_t served = __atomic_load_n(&interrupt->served, __ATOMIC_ACQUIRE);
    while ((int32_t)(served - raised) < 0) {
        port_futex_wait(&interrupt->served, served, NEVER_US);
        served = __atomic_load_n(&interrupt->served, __ATOMIC_ACQUIRE);
    }
    __atomic_store_n(&self->raising, false, __ATOMIC_RELAXED);
}

void vboard_interrupt_delete(vboard_interrupt_t *interrupt) {
    assert(!xPortInIsrContext());
    __atomic_store_n(&interrupt->ends, true, __ATOMIC_RELEASE);
    vboard_interrupt_raise(interrupt);
    pthread_join(interrupt->thread, NULL);
    free(interrupt);
}
