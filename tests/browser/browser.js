// A real Chromium with a profile of its own for each visitor, which notices everything that goes wrong in the page.

import assert from "node:assert/strict";
import { chromium } from "playwright-core";

import { PATIENCE_MS } from "./daemon.js";

const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";
const OPTIONS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/** Starts Chromium with an empty profile. */
export function launch() {
    return chromium.launch({ executablePath: EXECUTABLE, args: OPTIONS });
}

/** Someone with a browser: cookies of their own, and a list of what went wrong in their page. */
export async function visitor(browser) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const wrong = [];
    page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
    page.on("dialog", async (dialog) => {
        wrong.push(`dialog: ${dialog.message()}`);
        await dialog.dismiss();
    });
    page.on("console", (message) => {
        // Refusals of the daemon and a daemon that is away are part of the tests; the browser reports them on its own.
        const isAnswer = message.text().startsWith("Failed to load resource");
        if (message.type() === "error" && !isAnswer) wrong.push(`console: ${message.text()}`);
    });
    return {
        page,
        async leave() {
            await context.close();
            assert.deepEqual(wrong, [], "something went wrong in the page");
        },
    };
}
