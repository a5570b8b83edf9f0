// The view of a task: status, ports, state, and the tasks above and below it. It polls, as the list of tasks does.

import { get, segment } from "./api.js";
import { fill, h } from "./dom.js";
import { stateMark } from "./elements.js";
import { sentence } from "./notice.js";
import { polled, taskLink } from "./tasks.js";
import { onClock } from "./time.js";

/** Characters of a JSON value that a cell shows; the tooltip has more of it. */
const VALUE_SHOWN = 120;
const TOOLTIP_SHOWN = 2000;

export const title = ({ id }) => `Task ${id}`;

export function open(root, { id, signal }) {
    const head = h("div", {});
    const facts = h("dl", { class: "facts" });
    const ports = part("Ports", ["Port", "Direction", "Values", "Default", "Channels"], "ports");
    const state = part("State", ["Field", "Value"], "state-fields");
    const tree = h("div", { class: "tree" });
    const below = h("section", { hidden: true }, h("h2", {}, "Tree"), tree);
    fill(root, head, facts, below, ports.section, state.section);

    let shown = "";
    async function load() {
        const task = await get(`/tasks/${segment(id)}`, null, signal);
        const hasChildren = Object.keys(task.children).length > 0;
        const found = hasChildren ? await get(`/tasks/${segment(id)}/tree`, null, signal) : null;
        // Redrawing would lose the selection, so it happens only after a change.
        const text = JSON.stringify([task, found]);
        if (text === shown) return;
        shown = text;
        document.title = `Task ${task.id} ${task.status} · Cronhold`;
        fill(head, h("div", { class: "heading" }, h("h1", { class: "name" }, `Task ${task.id}`), stateMark(task.status)));
        fill(facts, factsOf(task));
        ports.show([...portRows("in", task.inports), ...portRows("out", task.outports)]);
        state.show(Object.entries(task.state).map(([field, value]) =>
            h("tr", {}, h("td", { class: "wraps" }, field), h("td", { class: "wraps" }, valueOf(value)))));
        fill(tree, found ? [treeOf(found.tasks), found.cut ? h("p", { class: "quiet" }, "There are further tasks.") : null] : null);
        below.hidden = !found;
    }

    const refresh = polled(signal, load, (error) => {
        // While the daemon is unreachable, the page says so, and the view stays.
        if (error.status === 0) return;
        shown = "";
        fill(head, h("div", { class: "none" }, sentence("", error)));
        for (const element of [facts, tree, ports.body, state.body]) fill(element);
        for (const section of [below, ports.section, state.section]) section.hidden = true;
    });
    return { onEvent: () => null, refresh };
}

/** A section with a table, which is hidden while the table is empty. */
function part(name, columns, kind) {
    const body = h("tbody", {});
    const section = h("section", { hidden: true }, h("h2", {}, name), h("table", { class: kind },
        h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col" }, column)))), body));
    function show(rows) {
        fill(body, rows);
        section.hidden = rows.length === 0;
    }
    return { section, body, show };
}

function factsOf(task) {
    return [
        ["Class", task.class],
        ["Queue", task.queue],
        task.parent !== null && ["Parent", [taskLink(task.parent), ` as ${task.name}`]],
        task.aliases.length > 0 && ["Aliases", task.aliases.join(", ")],
        task.args && ["Args", valueOf(task.args)],
        ["Created", [onClock(task.created_at), task.created_by ? ` by ${task.created_by}` : null]],
        task.ran_at && ["Last step", onClock(task.ran_at)],
        task.run_at && ["Next step", onClock(task.run_at)],
    ].filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
}

function portRows(direction, ports) {
    return Object.entries(ports).map(([name, port]) =>
        h("tr", { "data-port": `${direction}:${name}` },
            h("td", { class: "wraps" }, name),
            h("td", { class: "quiet" }, direction),
            h("td", { class: "number" }, String(port.size)),
            h("td", { class: "wraps" }, "default" in port ? valueOf(port.default) : null),
            h("td", { class: "wraps quiet" }, (port.channels ?? []).join(" "))));
}

/** A JSON value on one line. */
function valueOf(value) {
    const text = JSON.stringify(value);
    if (text.length <= VALUE_SHOWN) return h("code", {}, text);
    return h("code", { title: text.slice(0, TOOLTIP_SHOWN) }, `${text.slice(0, VALUE_SHOWN)}…`);
}

/** Nested lists from tasks in the order of the tree, each with its depth. */
function treeOf(tasks) {
    const lists = [];
    for (const task of tasks) {
        lists.length = Math.min(lists.length, task.depth + 1);
        if (lists.length === task.depth) {
            const list = h("ul", {});
            lists.at(-1)?.lastElementChild.append(list);
            lists.push(list);
        }
        const name = task.depth > 0 ? [task.name, " "] : null;
        lists[task.depth].append(h("li", { "data-tree-task": task.id },
            name, taskLink(task.id), h("span", { class: "quiet" }, ` ${task.class} `), stateMark(task.status)));
    }
    return lists[0];
}
