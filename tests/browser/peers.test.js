// The page of a node that shares a Redis with nodes of Cronken: it shows their runs beside ours.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, visitor } from "./browser.js";
import { Daemon } from "./daemon.js";
import { Redis } from "./redis.js";

const HOSTILE = "<img src=x onerror=document.title='taken'>";

const redis = new Redis();
const daemon = new Daemon({ "report.yaml": 'schedule: {cron: "30 2 * * *"}\nprogram: echo ours\n' });
let browser;

before(async () => {
    await redis.start();
    await daemon.start({ CRONHOLD_STORE: `${redis.url}?peers=cronken` });
    browser = await launch();
});

after(async () => {
    await browser?.close();
    await daemon.remove();
    await redis.remove();
});

/** Writes a run as a node of Cronken does. */
function writePeerRun(id, job, status, more) {
    const start = (Date.now() / 1000 - 2).toFixed(6);
    const rundata = { job_name: job, start_time: start, host: "draco", status, ...more };
    redis.cli("HSET", "{cronken}:rundata", id, JSON.stringify(rundata));
    if (status === "running") redis.cli("ZADD", "{cronken}:rundata:active", start, id);
    else for (const key of [`results:${job}:fail`, "results:fail"]) redis.cli("ZADD", `{cronken}:${key}`, start, id);
}

test("runs of Cronken's nodes are shown separately, with host and last lines", async () => {
    const { page, leave } = await visitor(browser);
    await page.goto(await daemon.link());
    await page.locator('tr[data-job="report"]').waitFor();
    const made = await daemon.request("POST", "/jobs/report/runs", {});

    await page.goto(`${daemon.url}/#/runs`);
    await page.locator(`tr[data-run="${made.id}"] .state.success`).waitFor();
    assert.ok(await page.getByText("Run by Cronken's own nodes").isHidden(), "there are none yet");
    writePeerRun("a1", "report", "running", {});
    writePeerRun("b2", HOSTILE, "fail", { retcode: 3, output: `one\n${HOSTILE}\n`, duration: 1.5 });
    const running = page.locator('tr[data-peer-run="a1"]');
    await running.waitFor();
    assert.match(await running.innerText(), /report\s+running[\s\S]*on draco/);
    const failed = page.locator('tr[data-peer-run="b2"]');
    assert.match(await failed.innerText(), /failure[\s\S]*1\.5 s[\s\S]*on draco, exit code 3/);
    await failed.getByText("Last lines").click();
    await failed.locator("pre").getByText(HOSTILE).waitFor();
    assert.equal(await page.locator("#view img").count(), 0);

    await running.getByRole("link", { name: "report" }).click();
    await page.locator("h1").getByText("report").waitFor();
    await page.locator('tr[data-peer-run="a1"]').waitFor();
    assert.equal(await page.locator('tr[data-peer-run="b2"]').count(), 0, "a run of another job is not shown");
    await page.goto(`${daemon.url}/#/runs?state=success`);
    await page.locator(`tr[data-run="${made.id}"]`).waitFor();
    assert.equal(await page.getByText("Run by Cronken's own nodes").count(), 0, "the filter applies to our runs only");
    await leave();
});
