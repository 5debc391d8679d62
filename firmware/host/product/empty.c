/* SPDX-License-Identifier: Apache-2.0 */
/* A component may have no sources. */
typedef int empty_t;
