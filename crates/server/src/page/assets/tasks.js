// The view of all tasks, in pages by id, with a filter by status. The feed has no events of tasks, so the view polls.

import { get, segment } from "./api.js";
import { Rows, fill, h } from "./dom.js";
import { stateMark } from "./elements.js";
import { sentence } from "./notice.js";
import { fromNow, onClock } from "./time.js";

const TASKS_PER_PAGE = 50;
const POLL_MS = 2000;

/** Choices of the filter: label and status. */
const STATUSES = [
    ["All", ""],
    ["Queued", "queued"],
    ["Running", "running"],
    ["Suspended", "suspended"],
    ["Completed", "completed"],
    ["Failed", "failed"],
    ["Terminating", "terminating"],
    ["Terminated", "terminated"],
];

export const title = () => "Tasks";

export function open(root, { query, signal }) {
    const status = query.get("status") ?? "";
    const after = query.get("after");
    const choices = STATUSES.map(([name, value]) =>
        h("a", { href: at(value, null), "aria-current": value === status ? "true" : null }, name));
    const body = h("tbody", {});
    const table = h("table", { class: "tasks", hidden: true }, h("thead", {}, h("tr", {},
        ["Task", "Status", "Queue", "Class", "Parent", "Last step", "Due"].map((name) => h("th", { scope: "col" }, name)))), body);
    const none = h("p", { class: "quiet", hidden: true }, "No tasks.");
    const problem = h("p", { class: "none", hidden: true });
    const pager = h("nav", { class: "pager", "aria-label": "Pages" });
    const nav = h("nav", { class: "choices", "aria-label": "Statuses" }, choices);
    fill(root, h("section", {}, h("div", { class: "heading" }, h("h1", {}, "Tasks"), nav), problem, table, none, pager));
    const rows = new Rows(body, (task) => task.id, taskRow);

    async function load() {
        const list = await get("/tasks", { status, after, limit: TASKS_PER_PAGE }, signal);
        rows.show(list.tasks);
        problem.hidden = true;
        table.hidden = list.tasks.length === 0;
        none.hidden = list.tasks.length > 0;
        fill(pager, [after ? h("a", { href: at(status, null) }, "First") : null,
            list.next ? h("a", { href: at(status, list.next) }, "Next") : null]);
    }

    const refresh = polled(signal, load, (error) => {
        // While the daemon is unreachable, the page says so, and the table stays.
        if (error.status === 0) return;
        fill(problem, sentence("Cannot load the tasks", error));
        problem.hidden = false;
    });
    return { onEvent: () => null, refresh };
}

function at(status, after) {
    const query = new URLSearchParams({ ...(status && { status }), ...(after && { after }) });
    return `#/tasks${query.size > 0 ? `?${query}` : ""}`;
}

export function taskLink(id) {
    return h("a", { class: "name", href: `#/task/${segment(id)}` }, String(id));
}

function taskRow(task) {
    return h("tr", { "data-task": task.id },
        h("td", {}, taskLink(task.id)),
        h("td", {}, stateMark(task.status)),
        h("td", { class: "wraps" }, task.queue),
        h("td", { class: "wraps" }, task.class),
        h("td", { class: "wraps quiet" }, task.parent === null ? null : [taskLink(task.parent), ` ${task.name}`]),
        h("td", { class: "number" }, task.ran_at ? fromNow(task.ran_at) : null),
        h("td", { class: "number" }, task.run_at ? onClock(task.run_at) : null));
}

/**
 * Calls `load` now and then, never concurrently, until the view is left. Returns a function that calls it once more.
 * A hidden page does not poll.
 */
export function polled(signal, load, onError) {
    let isBusy = false;
    async function refresh() {
        if (isBusy || signal.aborted) return;
        isBusy = true;
        try {
            await load();
        } catch (error) {
            if (error.name !== "AbortError" && !error.isSignedOut) onError(error);
        } finally {
            isBusy = false;
        }
    }
    const timer = setInterval(() => (document.hidden ? null : refresh()), POLL_MS);
    signal.addEventListener("abort", () => clearInterval(timer));
    refresh();
    return refresh;
}
