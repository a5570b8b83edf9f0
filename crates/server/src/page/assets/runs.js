// All runs, the latest first, a page at a time. The same table stands in a job's view.

import { get } from "./api.js";
import { Rows, fill, h, paced } from "./dom.js";
import { failed } from "./notice.js";
import { peerTable } from "./peers.js";
import { runRow } from "./show.js";

const RUNS_PER_PAGE = 50;
const REFRESH_MS = 700;

/** Choices of the filter: what it is called, and the states that it means. */
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

/** A table of runs in `place` that keeps itself up to date. `here` is the view that pages lead to. */
export function runTable(place, { signal, job = null, state = "", before = null, here }) {
    const body = h("tbody", {});
    const names = ["Run", "State", "When", "Took", "Why"];
    const table = h("table", { class: "runs", hidden: true },
        h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), body);
    const none = h("p", { class: "quiet", hidden: true }, "No runs.");
    const wrong = h("ul", { class: "mistakes" });
    const pager = h("nav", { class: "pager", "aria-label": "Pages" });
    fill(place, wrong, table, none, pager);
    const rows = new Rows(body, (run) => run.id, (run) => runRow(run, { withJob: job === null }));

    async function load() {
        const list = await get("/runs", { job, state, before, limit: RUNS_PER_PAGE }, signal);
        rows.show(list.runs);
        table.hidden = list.runs.length === 0;
        none.hidden = list.runs.length > 0;
        fill(wrong, (list.unreadable ?? []).map((text) => h("li", {}, text)));
        fill(pager, pages(here, state, before, list.next));
    }

    const show = () => load().catch((error) => failed("The runs cannot be shown", error));
    const refresh = paced(REFRESH_MS, show);
    signal.addEventListener("abort", () => refresh.stop());
    show();
    return { told: refresh, refresh };
}

function pages(here, state, before, next) {
    const at = (to) => {
        const query = new URLSearchParams({ ...(state && { state }), ...(to && { before: to }) });
        return here + (query.size > 0 ? `?${query}` : "");
    };
    return [before ? h("a", { href: at(null) }, "Latest") : null, next ? h("a", { href: at(next) }, "Older") : null];
}
