/** Allure 3 plugin: writes the trend page beside the test report, from this project's own history. */
import { readFile } from "node:fs/promises";

import { buildModel, parseLines } from "./model.js";
import { renderPage } from "./page.js";

const STYLE = new URL("../style.css", import.meta.url);

export default class TrendPlugin {
  /** @param {{history: string, title: string, remark: string, home: string, reported: string[], most: number}} options
   *   history: a JSONL file; reported and most: see buildModel
   */
  constructor(options = {}) {
    this.options = options;
  }

  /** Called by Allure once all results are read. */
  async done(context) {
    const { history, reported, most, ...words } = this.options;
    const [lines, style] = await Promise.all([readFile(history, "utf-8"), readFile(STYLE, "utf-8")]);
    const page = renderPage(buildModel(parseLines(lines), { reported, most }), { ...words, style });
    await context.reportFiles.addFile("index.html", Buffer.from(page));
  }
}
