// The view of a run: state, history, output and actions.

import { get, segment } from "./api.js";
import { runButtons } from "./actions.js";
import { actionRow, isDelivering } from "./deliveries.js";
import { fill, h, throttled } from "./dom.js";
import { failed, sentence } from "./notice.js";
import { showOutput } from "./output.js";
import { countOf, isEnded, jobLink, reasonOf, stateMark, tookOf } from "./elements.js";
import { onClock, toTheMillisecond } from "./time.js";

const REFRESH_MS = 300;
/** The feed has no events of deliveries, so a run with a pending action is loaded again after this time. */
const DELIVERY_MS = 2_000;

export const title = ({ id }) => `Run ${id}`;

export function open(root, { id, signal }) {
    const head = h("div", {});
    const facts = h("dl", { class: "facts" });
    const output = h("section", {});
    const steps = h("tbody", {});
    const log = h("section", {}, h("h2", {}, "Steps"),
        h("table", { class: "steps" }, h("thead", {}, h("tr", {},
            ["Time", "State", "By", "Reason"].map((name) => h("th", { scope: "col" }, name)))), steps));
    const deliveries = h("tbody", {});
    const actions = h("section", {}, h("h2", {}, "Actions"),
        h("table", { class: "deliveries" }, h("thead", {}, h("tr", {},
            ["On", "Action", "Status", "Attempts", "Last error"].map((name) => h("th", { scope: "col" }, name)))),
        deliveries));
    fill(root, head, facts, output, actions, log);
    log.hidden = true;
    actions.hidden = true;

    let shown = "";
    let hasOutput = false;
    let again = null;
    async function load() {
        const run = await get(`/runs/${segment(id)}`, null, signal);
        clearTimeout(again);
        if (isDelivering(run)) again = setTimeout(refresh, DELIVERY_MS);
        const text = JSON.stringify(run);
        if (text === shown) return;
        shown = text;
        document.title = `${run.job}#${run.number} ${run.state} · Cronhold`;
        fill(head, heading(run, refresh));
        fill(facts, factsOf(run));
        fill(steps, run.log.map(stepRow));
        log.hidden = false;
        fill(deliveries, run.actions.map(actionRow));
        actions.hidden = run.actions.length === 0;
        if (!hasOutput && mayHaveOutput(run)) {
            hasOutput = true;
            showOutput(output, run, signal);
        }
    }

    const refresh = throttled(REFRESH_MS, () => load().catch((error) => failed("Cannot load the run", error)));
    signal.addEventListener("abort", () => {
        clearTimeout(again);
        refresh.stop();
    });
    load().catch((error) => error.isSignedOut || fill(head, h("div", { class: "none" }, sentence("", error))));
    return { onEvent: (kind, value) => (kind === "run" && value?.id && value.id !== id ? null : refresh()), refresh };
}

/** Before the program has been started there is no output, and a request to follow it would not return. */
function mayHaveOutput(run) {
    return Boolean(run.times.starting);
}

function heading(run, refresh) {
    return [
        h("div", { class: "heading" },
            h("h1", { class: "name" }, jobLink(run.job), h("span", { class: "quiet" }, `#${run.number}`)),
            stateMark(run.state), countOf(run),
            h("div", { class: "buttons" }, runButtons(run, refresh))),
        reasonOf(run) ? h("p", { class: run.reason && run.state !== "skipped" ? "reason strong" : "reason" }, reasonOf(run)) : null,
    ];
}

function factsOf(run) {
    const args = Object.entries(run.args).map(([name, value]) => `${name}=${value}`).join(" ");
    const toRun = (id) => h("a", { href: `#/run/${segment(id)}` }, "earlier run");
    return [
        ["Scheduled for", onClock(run.nominal_time)],
        run.count > 1 && ["Covers", [`${run.count} occurrences, `, onClock(run.from), " to ", onClock(run.to)]],
        run.times.running && ["Started", onClock(run.times.running)],
        run.times.finished && ["Ended", onClock(run.times.finished)],
        tookOf(run) && [isEnded(run) ? "Took" : "Running for", tookOf(run)],
        run.exit_code !== null && ["Exit code", String(run.exit_code)],
        run.signal && ["Signal", run.signal],
        run.task && ["Remote task", h("code", {}, run.task)],
        run.response && ["Response", responseOf(run.response)],
        run.progress && ["Progress", progressOf(run.progress)],
        run.attempt > 1 && ["Attempt", String(run.attempt)],
        run.retry_of && ["Retry of", toRun(run.retry_of)],
        run.retried_by && ["Retried by", toRun(run.retried_by)],
        run.rerun_of && ["Rerun of", toRun(run.rerun_of)],
        args !== "" && ["Args", h("code", {}, args)],
        run.command && ["Program", h("code", {}, run.command)],
        run.lock && ["Lock", h("code", {}, run.lock)],
        run.node && ["Node", h("code", {}, run.node)],
        ["ID", h("code", {}, run.id)],
    ].filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
}

/** The status of a service's response, the type of its body, and how many redirects led to it. */
function responseOf(response) {
    const kind = response.headers.find((header) => header.name === "content-type");
    const redirects = response.redirects > 0 && `after ${response.redirects} redirect${response.redirects > 1 ? "s" : ""}`;
    return [`status ${response.status}`, kind?.value, redirects].filter(Boolean).join(", ");
}

/** How far a plug-in is, and what it does. */
function progressOf(progress) {
    return [progress.percent !== null && `${progress.percent} %`, progress.text].filter(Boolean).join(", ");
}

function stepRow(step) {
    return h("tr", {}, h("td", { class: "number" }, toTheMillisecond(step.at)), h("td", {}, stateMark(step.state)),
        h("td", {}, step.actor), h("td", { class: "quiet wraps" }, step.message));
}
