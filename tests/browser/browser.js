// Chromium with a separate profile for each visitor, which records every error of the page.

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

/** A visitor with separate cookies. `leave` fails if errors occurred in the page. */
export async function visitor(browser) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(`error: ${error.message}`));
    page.on("dialog", async (dialog) => {
        errors.push(`dialog: ${dialog.message()}`);
        await dialog.dismiss();
    });
    page.on("console", (message) => {
        // Error responses and an unreachable daemon are part of the tests; the browser logs them itself.
        const isResponse = message.text().startsWith("Failed to load resource");
        if (message.type() === "error" && !isResponse) errors.push(`console: ${message.text()}`);
    });
    return {
        page,
        async leave() {
            await context.close();
            assert.deepEqual(errors, [], "errors in the page");
        },
    };
}
