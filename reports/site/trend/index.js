// SPDX-License-Identifier: Apache-2.0
/** Allure 3 plugin: writes the trend page beside the test report, from trend.json. */
import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

import { renderPage } from "./page.js";

const POLL_MS = 50;
const NOTICE = "/* With uPlot (MIT, Copyright (c) 2022 Leon Sorokin), Preact (MIT, Copyright (c) 2015-present Jason Miller) and htm (Apache-2.0). */";
const STYLES = ["../style.css", "../node_modules/uplot/dist/uPlot.min.css", "trend.css", "charts.css"];

/** The plugin; Allure makes one and calls done() at its end. */
export default class TrendPlugin {
  /** @param {{data: string}} options  the path of trend.json (docs/reference/schema/trend.schema.json) */
  constructor(options) {
    this.options = options;
  }

  /** Called by Allure once all results are read. */
  async done(context) {
    const [text, parts] = await Promise.all([readWhenThere(this.options.data), readParts()]);
    const page = renderPage(JSON.parse(text), parts);
    await context.reportFiles.addFile("index.html", new TextEncoder().encode(page));
  }
}

/** Read a file that comes into being whole, while Allure is at work; its writer ends this process where it cannot. */
async function readWhenThere(path) {
  for (;;) {
    try {
      return await readFile(path, "utf-8");
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
    await setTimeout(POLL_MS);
  }
}

/** Return the script and the style of the page, each as one text. */
export async function readParts() {
  const [script, ...styles] = await Promise.all([bundle(), ...STYLES.map((name) => readFile(new URL(name, import.meta.url), "utf-8"))]);
  return { script, style: styles.join("\n") };
}

async function bundle() {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("app.js", import.meta.url))], bundle: true, minify: true, format: "iife", target: "es2023",
    charset: "utf8", legalComments: "none", banner: { js: NOTICE }, write: false, logLevel: "silent",
  });
  return outputFiles[0].text;
}
