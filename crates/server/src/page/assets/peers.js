// Runs of Cronken nodes that share the store. These nodes send no events, so the page polls, and it cannot control
// their runs. Without such runs, the section is hidden.

import { get } from "./api.js";
import { Rows, fill, h } from "./dom.js";
import { jobLink, stateMark } from "./elements.js";
import { onClock, since, span } from "./time.js";

const SHOWN_MAX = 50;
const POLL_MS = 5000;

/** Shows the runs of Cronken nodes in `place`, of one job or of all jobs. */
export function peerTable(place, { signal, job = null }) {
    const body = h("tbody", {});
    const names = [job === null ? "Job" : "Run", "State", "When", "Took", "Where"];
    const table = h("table", { class: "runs" },
        h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), body);
    const section = h("section", { hidden: true }, h("h2", {}, "Run by Cronken's own nodes"), table);
    fill(place, section);
    const rows = new Rows(body, (run) => run.id, (run) => peerRow(run, job === null));

    async function load() {
        const runs = await get("/peers/runs", { job, limit: SHOWN_MAX }, signal);
        rows.show(runs);
        section.hidden = runs.length === 0;
    }

    // On an error the table stays as it is: the table of our own runs on the same page reports the error.
    const show = () => (document.hidden ? null : load().catch(() => null));
    const timer = setInterval(show, POLL_MS);
    signal.addEventListener("abort", () => clearInterval(timer));
    show();
}

function peerRow(run, withJob) {
    return h("tr", { "data-peer-run": run.id },
        h("td", { class: "wraps" }, withJob ? jobLink(run.job) : h("code", {}, run.id)),
        h("td", {}, stateMark(run.state)),
        h("td", { class: "number" }, onClock(run.started)),
        h("td", { class: "number" }, tookOf(run)),
        h("td", { class: "reason quiet" }, [`on ${run.host}`, endOf(run)].filter(Boolean).join(", "), tail(run)));
}

function tookOf(run) {
    if (run.state === "running") return since(run.started);
    return run.took_ms === null ? null : span(run.took_ms);
}

function endOf(run) {
    return run.signal ?? (run.exit_code ? `exit code ${run.exit_code}` : null);
}

/** The last lines of the output; Cronken stores no more than these. */
function tail(run) {
    if (run.tail.length === 0) return null;
    return h("details", {}, h("summary", {}, "Last lines"), h("pre", { class: "definition" }, run.tail.join("\n")));
}
