/* SPDX-License-Identifier: Apache-2.0 */
/* What one task asks of another that may be running: suspend yourself, delete yourself.
 *
 * A request is a bit in the task's word and a signal to its thread. The task obeys at once when it is in the
 * firmware's own code, and on leaving when it is in the kernel or a critical section. Inside a library
 * (malloc, stdio, OpenSSL, a system call) it might hold a lock, so the signal is repeated for up to
 * NAGS * NAG_NS; if it stays there longer the task obeys at its next call of this kernel. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include "kernel.h"

#define NAGS 40
#define NAG_NS 50000

#define REQUEST_SIGNAL (SIGRTMIN + 3)

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

extern char __executable_start, etext;

static uintptr_t interrupted_at(const ucontext_t *context) {
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#else
#error "where this processor keeps the interrupted address"
#endif
}

static bool in_firmware(uintptr_t address) {
    return address >= (uintptr_t)&__executable_start && address < (uintptr_t)&etext;
}

static void ask_again_soon(task_t *self) {
    if (__atomic_fetch_sub(&self->nags_left, 1, __ATOMIC_ACQ_REL) > 0) {
        const struct itimerspec once = {.it_value = {.tv_nsec = NAG_NS}};
        timer_settime(self->nag, 0, &once, NULL);
    }
}

static void on_request(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    (void)info;
    task_t *self = task_self();
    if (self->kernel_depth != 0 || __atomic_load_n(&self->requests, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    int saved_errno = errno;
    if (in_firmware(interrupted_at(context))) {
        request_park_running(self);
    } else {
        ask_again_soon(self);
    }
    errno = saved_errno;
}

void request_park_running(task_t *self) {
    traceTASK_SWITCHED_OUT();
    request_park(self);
    traceTASK_SWITCHED_IN();
}

void request_init(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_request;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(REQUEST_SIGNAL, &action, NULL);
}

static void create_nag_timer(task_t *task) {
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = REQUEST_SIGNAL;
    event.sigev_notify_thread_id = task->tid;
    task->nag_created = timer_create(CLOCK_MONOTONIC, &event, &task->nag) == 0;
}

/* In the kernel, for another task. */
void request_post(task_t *task, uint32_t request) {
    __atomic_or_fetch(&task->requests, request, __ATOMIC_RELEASE);
    port_futex_wake(&task->requests, 1);
    if (task->tid == 0 || task->blocked) {
        return; /* not started, or asleep in the kernel: it looks by itself */
    }
    if (!task->nag_created) {
        create_nag_timer(task);
    }
    __atomic_store_n(&task->nags_left, task->nag_created ? NAGS : 0, __ATOMIC_RELEASE);
    tgkill(getpid(), task->tid, REQUEST_SIGNAL);
}

void request_forget_timer(task_t *task) {
    if (task->nag_created) {
        timer_delete(task->nag);
        task->nag_created = false;
    }
}

/* Sleeps while suspended; does not return when the task is to go. */
void request_park(task_t *self) {
    uint32_t requests = __atomic_load_n(&self->requests, __ATOMIC_ACQUIRE);
    while (requests == REQUEST_SUSPEND) {
        port_futex_wait(&self->requests, requests, NEVER_US);
        requests = __atomic_load_n(&self->requests, __ATOMIC_ACQUIRE);
    }
    if ((requests & REQUEST_DELETE) != 0 && !self->adopted) {
        siglongjmp(self->exit_point, 1);
    }
}
