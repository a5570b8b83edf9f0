// Tests of the web page: sign in, list jobs, run, follow, stop, pause.

import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";

import { launch, visitor } from "./browser.js";
import { Daemon, until } from "./daemon.js";

/** A job name that would run a script if the page inserted it as markup. */
const HOSTILE = "<img src=x onerror=document.title='taken'>";

const JOBS = {
    "demo/ticker.yaml":
        "description: Counts until someone stops it.\nlabels: [demo]\n" +
        'program: n=0; while :; do n=$((n+1)); printf "line %s \\033[31m<b>red</b>\\033[0m\\n" $n; sleep 0.1; done\n',
    "nightly.yaml": 'schedule: {cron: "30 2 * * *", timezone: Europe/Berlin}\nprogram: "true"\n',
    "alarming.yaml":
        'program: exit 3\non:\n  failure:\n    - run: {job: nightly, args: {}}\n' +
        `    - command: "echo '<b>no pager</b>'; exit 7"\n`,
    "broken.yaml": 'program: "true"\nlokc: database\n',
    [`${HOSTILE}.yaml`]: `description: "<script>document.title='taken'</script>"\nprogram: "echo '<img src=y>'"\n`,
};

const daemon = new Daemon(JOBS);
let browser;

before(async () => {
    await daemon.start();
    browser = await launch();
});

after(async () => {
    await browser?.close();
    await daemon.remove();
});

/**
 * A test with its own visitor, who is signed in by a link unless `isSignedIn` is false. A failure shows the page and
 * the output of the daemon.
 */
function visit(name, { isSignedIn = true }, steps) {
    test(name, async () => {
        const guest = await visitor(browser);
        try {
            if (isSignedIn) await guest.page.goto(await daemon.link());
            await steps(guest.page);
        } catch (error) {
            const shown = await guest.page.locator("body").innerText();
            const details = `The page was:\n${shown}\n\nThe daemon's output:\n${daemon.output}`;
            throw new Error(`${error.message}\n\n${details}`, { cause: error });
        } finally {
            await guest.leave();
        }
    });
}

const row = (page, id) => page.locator(`tr[data-job=${JSON.stringify(id)}]`);
const action = (place, name) => place.locator(`[data-action=${name}]`);

visit("a printed link works once, and the session stays with its origin", { isSignedIn: false }, async (page) => {
    assert.ok(daemon.printedLink, "a link is printed");
    await page.goto(daemon.printedLink);
    await row(page, "nightly").waitFor();
    assert.equal(page.url(), `${daemon.url}/`, "the code is removed from the address");
    await page.reload();
    await row(page, "nightly").waitFor();

    // A server on another port of the host, such as one of another user, gets nothing from the browser.
    const received = [];
    const neighbour = http.createServer((request, response) => {
        received.push(request.headers);
        response.end("<!doctype html><title>neighbour</title>");
    });
    await new Promise((go) => neighbour.listen(0, "127.0.0.1", go));
    await page.goto(`http://127.0.0.1:${neighbour.address().port}/`);
    assert.equal(await page.evaluate(() => localStorage.length), 0);
    assert.deepEqual(await page.context().cookies(), []);
    assert.ok(received.every((headers) => !headers.cookie && !headers.authorization));
    await new Promise((go) => neighbour.close(go).closeAllConnections());

    const other = await visitor(browser);
    await other.page.goto(daemon.printedLink);
    await other.page.getByText("the link was already used or has expired").waitFor();
    await other.page.getByText("cronhold token link").first().waitFor();
    await other.leave();
});

visit("without a session the page shows the sign-in form and no data", { isSignedIn: false }, async (page) => {
    await page.goto(daemon.url);
    await page.getByText("You are not signed in").waitFor();
    const text = await page.content();
    for (const secret of ["nightly", "ticker", "lokc"]) assert.ok(!text.includes(secret), `it shows ${secret}`);
    const status = await page.evaluate(() => fetch("/api/v1/jobs").then((answer) => answer.status));
    assert.equal(status, 401);

    await page.fill("#token", "0".repeat(64));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".sign-in .trouble strong").waitFor();
    await page.fill("#token", daemon.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await row(page, "nightly").waitFor();
});

visit("the list shows every job and the errors of invalid files", {}, async (page) => {
    for (const id of ["demo/ticker", "nightly", "broken", HOSTILE]) await row(page, id).waitFor();
    assert.match(await row(page, "nightly").innerText(), /30 2 \* \* \*/);
    const next = row(page, "nightly").locator("td.next time");
    assert.match(await next.innerText(), /^(in \d+ (s|min|h)|now)$/);
    assert.match(await next.getAttribute("title"), /:30:00Z \(UTC\)/);
    const broken = await row(page, "broken").innerText();
    assert.match(broken, /broken\.yaml:2:1/);
    assert.match(broken, /lokc/);
    assert.match(broken, /lock/);

    await page.getByRole("searchbox").fill("tick");
    await row(page, "nightly").waitFor({ state: "detached" });
    await row(page, "demo/ticker").waitFor();
    assert.match(page.url(), /find=tick/);
    await page.getByRole("searchbox").fill("nothing like it");
    await page.getByText("No jobs match.").waitFor();
});

visit("a run is started, followed and stopped", {}, async (page) => {
    await action(row(page, "demo/ticker"), "run").click();
    await page.locator(".notice.done a").click();
    await page.locator("#view .heading .state.running").waitFor();
    const output = page.locator("pre.output");
    const lines = async () => (await output.innerText()).match(/line \d+/g)?.length ?? 0;
    const first = await until("the first lines appear", lines);
    await until("more lines appear without a reload", async () => (await lines()) > first + 3);
    await page.locator("#view .heading .state.running").waitFor();
    assert.match(await output.innerText(), /line 1 <b>red<\/b>\n/, "markup is text, escape sequences are gone");
    assert.equal(await output.locator("b").count(), 0);
    assert.equal(await output.locator(".fg1").first().innerText(), "<b>red</b>", "colours are shown");

    await action(page.locator("#view"), "stop").click();
    await action(page.locator("#view"), "rerun").waitFor();
    await page.locator("pre.output[data-ended]").waitFor();
    assert.ok((await lines()) > first);
    const steps = await page.locator(".steps .state").allInnerTexts();
    assert.deepEqual(steps.slice(-3, -1), ["running", "stopping"]);
    assert.equal(await action(page.locator("#view"), "stop").count(), 0, "a finished run has no stop button");
});

visit("the actions of a run are shown with their attempts", {}, async (page) => {
    const made = await daemon.request("POST", "/jobs/alarming/runs", {});
    await page.goto(`${daemon.url}/#/run/${made.id}`);
    const rows = page.locator(".deliveries tbody tr");
    await until("both actions are listed", async () => (await rows.count()) === 2);
    // The table follows deliveries by itself.
    await rows.nth(0).locator(".delivery.done").waitFor();
    assert.match(await rows.nth(0).innerText(), /failure\s+run nightly\s+done/);
    await rows.nth(1).getByText("exit code 7: <b>no pager</b>").waitFor();
    assert.match(await rows.nth(1).innerText(), /failure\s+command\s+pending, next/);
    assert.equal(await page.locator(".deliveries b").count(), 0, "markup is text");
    await rows.nth(0).getByRole("link", { name: "nightly" }).click();
    await page.locator("#view .heading .state.success").waitFor();
    assert.equal(await page.locator(".deliveries").isVisible(), false, "a run without actions has no table");
});

visit("changes by others appear without a reload", {}, async (page) => {
    await page.locator(".live").waitFor();
    const made = await daemon.request("POST", "/jobs/nightly/runs", {});
    await page.locator(`aside li[data-run="${made.id}"] .state.success`).waitFor();
    await row(page, "nightly").locator(".last .state.success").waitFor();
    daemon.write("new.yaml", 'program: "true"\n');
    await row(page, "new").waitFor();
});

visit("a job is paused with a reason and resumed", {}, async (page) => {
    await action(row(page, "nightly"), "pause").click();
    await page.getByRole("dialog").getByLabel("Reason").fill("tea");
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await row(page, "nightly").getByText("paused", { exact: true }).waitFor();
    assert.equal((await daemon.request("GET", "/jobs/nightly")).pause.why, "tea");

    await row(page, "nightly").getByRole("link", { name: "nightly", exact: true }).click();
    await page.getByText(/Paused since .* by page: tea/).waitFor();
    await page.getByText("At 02:30 every day, Europe/Berlin time").waitFor();
    await action(page.locator("#view"), "resume").click();
    await action(page.locator("#view"), "pause").waitFor();
    assert.equal((await daemon.request("GET", "/jobs/nightly")).paused, false);
});

visit("an error is shown with its hint, and the page stays usable", {}, async (page) => {
    await page.goto(`${daemon.url}/#/job/nighly`);
    await page.locator("#view .none strong").waitFor();
    await page.goto(`${daemon.url}/#/`);
    const made = await daemon.request("POST", "/jobs/demo%2Fticker/runs", {});
    await page.goto(`${daemon.url}/#/run/${made.id}`);
    await page.locator("#view .heading .state.running").waitFor();
    // Simulates a run that ended before the page received the event.
    await page.route("**/runs/*/stop", (route) =>
        route.fulfill({
            status: 409,
            contentType: "application/problem+json",
            body: JSON.stringify({ status: 409, code: "conflict", detail: "it has ended", hint: "ask for `rerun`" }),
        }),
    );
    await action(page.locator("#view"), "stop").click();
    const notice = page.getByRole("alert");
    await notice.getByText("Cannot stop the run: it has ended").waitFor();
    assert.match(await notice.innerText(), /ask for rerun/);
    await page.unroute("**/runs/*/stop");
    await action(page.locator("#view"), "stop").click();
    await action(page.locator("#view"), "rerun").waitFor();
});

visit("names, descriptions and outputs never become markup", {}, async (page) => {
    const hostile = row(page, HOSTILE);
    assert.match(await hostile.innerText(), /<script>document\.title='taken'<\/script>/);
    await action(hostile, "run").click();
    await page.locator(".notice.done a").click();
    await page.locator("pre.output").getByText("<img src=y>").waitFor();
    await page.getByRole("link", { name: HOSTILE }).click();
    await page.locator("#view h1").getByText(HOSTILE, { exact: true }).waitFor();
    assert.equal(await page.locator("#view img, #view script, #notices img").count(), 0);
    assert.ok(!(await page.title()).startsWith("taken"));
});

visit("split escape sequences are parsed", {}, async (page) => {
    const cases = [
        [["plain\r\n"], [["plain\n", ""]]],
        [["\x1b[1;3", "1mred\x1b", "[0m."], [["red", "fg1 bold"], [".", ""]]],
        [["\x1b[38;5;9mone\x1b[48;2;1;2;3mtwo\x1b[39m"], [["one", "fg9"], ["two", "fg9"]]],
        [["\x1b]0;title\x07a\x1b[2Kb\x1b[?25lc\x00\u202e"], [["a", ""], ["b", ""], ["c", ""]]],
        [["10 %\r", "20 %\r", "\n"], [["10 %", ""], ["\n20 %", ""], ["\n", ""]]],
        [["\x1b[" + "9;".repeat(200)], [["[" + "9;".repeat(200), ""]]],
    ];
    const found = await page.evaluate(async (inputs) => {
        const { Ansi } = await import(new URL("ansi.js", document.querySelector("script[src]").src));
        return inputs.map((pieces) => {
            const ansi = new Ansi();
            return pieces.flatMap((piece) => ansi.feed(piece)).map(({ text, classes }) => [text, classes]);
        });
    }, cases.map(([pieces]) => pieces));
    assert.deepEqual(found, cases.map(([, expected]) => expected));
});

visit("the page reports an unreachable daemon and reconnects", {}, async (page) => {
    await page.locator(".live").waitFor();
    await daemon.stop();
    await page.getByText("The daemon is unreachable.").waitFor();
    await daemon.start();
    await page.locator("#status-banner").waitFor({ state: "hidden" });
    await page.locator(".live").waitFor();
    const made = await daemon.request("POST", "/jobs/nightly/runs", {});
    await page.locator(`aside li[data-run="${made.id}"]`).waitFor();
});
