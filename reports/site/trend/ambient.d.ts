// SPDX-License-Identifier: Apache-2.0
/** Modules that bring no types of their own. */
declare module "d3-scale";
declare module "d3-shape";
declare module "node:crypto";
declare module "node:fs/promises";
declare module "node:url";
declare module "node:timers/promises" {
  export function setTimeout(delayMs: number): Promise<void>;
}
