/* SPDX-License-Identifier: Apache-2.0 */
/* Made by `python -m tools.component_names`; do not edit.
 *
 * Included before each source of the component, so that a product may have a `link_up` or a `record_begin` of
 * its own. */
#pragma once

#define names_clear hil_names_clear
#define names_complete hil_names_complete
#define names_forget_object hil_names_forget_object
#define names_forget_task hil_names_forget_task
#define names_object_kind hil_names_object_kind
#define names_of_object hil_names_of_object
#define names_of_task hil_names_of_task
#define names_set_kind hil_names_set_kind
#define names_set_priority hil_names_set_priority
#define names_take_memory hil_names_take_memory
#define names_task hil_names_task
#define ring_end hil_ring_end
#define ring_first hil_ring_first
#define ring_is_frozen hil_ring_is_frozen
#define ring_read hil_ring_read
#define ring_record hil_ring_record
#define trace_freeze hil_trace_freeze
#define trace_hook_new_object hil_trace_hook_new_object
#define trace_hook_new_task hil_trace_hook_new_task
#define trace_hook_object hil_trace_hook_object
#define trace_hook_object_is hil_trace_hook_object_is
#define trace_hook_task hil_trace_hook_task
#define trace_is_on hil_trace_is_on
#define trace_isr_enter hil_trace_isr_enter
#define trace_isr_exit hil_trace_isr_exit
#define trace_mark hil_trace_mark
#define trace_start hil_trace_start
#define trace_stop hil_trace_stop
