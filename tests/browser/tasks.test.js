// The page shows tasks: the list with its filter, one task with its ports, state and tree, and changes of them. No worker
// runs: the test registers classes and sends requests.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, visitor } from "./browser.js";
import { Daemon } from "./daemon.js";

const HOSTILE = "<img src=x onerror=document.title='taken'>";

const daemon = new Daemon({});
let browser;

before(async () => {
    await daemon.start();
    browser = await launch();
    const classes = { Sum: { inports: { in: {} }, outports: { sum: {} } }, [HOSTILE]: {} };
    await daemon.request("POST", "/queues/core/classes", { classes });
    const inports = { factor: { default: HOSTILE }, orders: { channels: ["/shop/orders"] } };
    await daemon.request("POST", "/tasks", { queue: "core", class: "Sum", alias: "above", inports });
    await daemon.request("POST", "/tasks", { queue: "core", class: HOSTILE, parent: 1, name: HOSTILE });
    await daemon.request("POST", "/tasks", { queue: "core", class: "Sum", parent: 2, name: "below" });
    await daemon.request("POST", "/tasks/1/state", { set: { note: HOSTILE } });
});

after(async () => {
    await browser?.close();
    await daemon.remove();
});

test("tasks are listed by status, and one is shown with its tree, ports and state, live", async () => {
    const { page, leave } = await visitor(browser);
    try {
        await visit(page);
    } catch (error) {
        const shown = await page.locator("body").innerText();
        throw new Error(`${error.message}\n\nThe page was:\n${shown}`, { cause: error });
    } finally {
        await leave();
    }
});

async function visit(page) {
    await page.goto(await daemon.link());
    await page.getByRole("link", { name: "Tasks" }).click();
    const row = (id) => page.locator(`tr[data-task="${id}"]`);
    await row(3).waitFor();
    assert.match(await row(2).innerText(), /queued[\s\S]*core[\s\S]*1 <img/);

    // A change appears by itself, and the filter selects it.
    await daemon.request("POST", "/tasks/3/terminate");
    await row(3).locator(".state.terminating").waitFor();
    await page.getByRole("link", { name: "Terminating" }).click();
    await row(1).waitFor({ state: "detached" });
    await row(3).waitFor();
    assert.match(page.url(), /#\/tasks\?status=terminating$/);
    await page.getByRole("link", { name: "Failed" }).click();
    await page.getByText("No tasks.").waitFor();
    await page.getByRole("link", { name: "All" }).click();

    await row(1).getByRole("link", { name: "1", exact: true }).click();
    await page.locator("h1").getByText("Task 1").waitFor();
    const port = (name) => page.locator(`tr[data-port="${name}"]`);
    await port("in:in").waitFor();
    assert.match(await port("in:factor").innerText(), /in\s+0\s+"<img/);
    assert.match(await port("in:orders").innerText(), /\/shop\/orders/);
    assert.match(await page.locator(".state-fields").innerText(), /note\s+"<img/);
    const below = page.locator('li[data-tree-task="2"] li[data-tree-task="3"]');
    assert.match(await below.innerText(), /below 3 Sum terminating/);

    await daemon.request("POST", "/tasks/1/inports/in", { list: [1, 2, 3] });
    await port("in:in").locator("td.number").getByText("3").waitFor();
    await daemon.request("POST", "/tasks/1/terminate");
    await page.locator(".heading .state.terminating").waitFor();
    await below.getByRole("link", { name: "3" }).click();
    await page.locator("h1").getByText("Task 3").waitFor();
    await page.locator(".facts").getByRole("link", { name: "2" }).waitFor();
    await page.goto(`${daemon.url}/#/task/99`);
    await page.getByText("there is no task 99").waitFor();
    assert.equal(await page.locator("#view img").count(), 0);
}
