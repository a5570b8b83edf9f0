// The view of all runs, latest first, in pages. The view of a job uses the same table.

import { get } from "./api.js";
import { Rows, fill, h, throttled } from "./dom.js";
import { failed } from "./notice.js";
import { peerTable } from "./peers.js";
import { runRow } from "./elements.js";

const RUNS_PER_PAGE = 50;
const REFRESH_MS = 700;

/** Choices of the filter: label and states. */
const STATES = [
    ["All", ""],
    ["Active", "scheduled,waiting,starting,running,stopping"],
    ["Failed", "failure,error"],
    ["Succeeded", "success"],
    ["Skipped", "skipped"],
];

export const title = () => "Runs";

export function open(root, { query, signal }) {
    const state = query.get("state") ?? "";
    const choices = STATES.map(([name, value]) => {
        const href = value === "" ? "#/runs" : `#/runs?state=${value}`;
        return h("a", { href, "aria-current": value === state ? "true" : null }, name);
    });
    const place = h("div", {});
    const peers = h("div", {});
    const nav = h("nav", { class: "choices", "aria-label": "States" }, choices);
    fill(root, h("section", {}, h("div", { class: "heading" }, h("h1", {}, "Runs"), nav), place), peers);
    if (state === "" && !query.has("before")) peerTable(peers, { signal });
    return runTable(place, { signal, state, before: query.get("before"), here: "#/runs" });
}

/** Shows a table of runs in `place` and refreshes it. `here` is the URL of the view, for links to other pages. */
export function runTable(place, { signal, job = null, state = "", before = null, here }) {
    const body = h("tbody", {});
    const names = ["Run", "State", "When", "Took", "Reason"];
    const table = h("table", { class: "runs", hidden: true },
        h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), body);
    const none = h("p", { class: "quiet", hidden: true }, "No runs.");
    const errors = h("ul", { class: "errors" });
    const pager = h("nav", { class: "pager", "aria-label": "Pages" });
    fill(place, errors, table, none, pager);
    const rows = new Rows(body, (run) => run.id, (run) => runRow(run, { withJob: job === null }));

    async function load() {
        const list = await get("/runs", { job, state, before, limit: RUNS_PER_PAGE }, signal);
        rows.show(list.runs);
        table.hidden = list.runs.length === 0;
        none.hidden = list.runs.length > 0;
        fill(errors, (list.unreadable ?? []).map(({ record, reason }) => h("li", {}, `cannot read ${record ?? "a record"}: ${reason}`)));
        fill(pager, pages(here, state, before, list.next));
    }

    const show = () => load().catch((error) => failed("Cannot load the runs", error));
    const refresh = throttled(REFRESH_MS, show);
    signal.addEventListener("abort", () => refresh.stop());
    show();
    return { onEvent: refresh, refresh };
}

function pages(here, state, before, next) {
    const at = (to) => {
        const query = new URLSearchParams({ ...(state && { state }), ...(to && { before: to }) });
        return here + (query.size > 0 ? `?${query}` : "");
    };
    return [before ? h("a", { href: at(null) }, "Latest") : null, next ? h("a", { href: at(next) }, "Older") : null];
}
