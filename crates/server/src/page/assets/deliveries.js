// The actions of a run: what its events caused, and how far each delivery has come.

import { segment } from "./api.js";
import { h } from "./dom.js";
import { onClock, untilDue } from "./time.js";

/** Whether an action is still being delivered, so that the view of the run has to be loaded again. */
export function isDelivering(run) {
    return run.actions.some((action) => action.status === "pending");
}

/** An action as a row: event, kind and target, status, attempts and the last error. */
export function actionRow(action) {
    return h("tr", { "data-action-id": action.id },
        h("td", {}, action.event),
        h("td", { class: "wraps" }, action.kind, targetOf(action)),
        h("td", {}, statusOf(action)),
        h("td", { class: "number" }, String(action.attempts)),
        h("td", { class: "quiet wraps" }, action.error));
}

/** The receiver; for an action that has created a run, a link to it. */
function targetOf(action) {
    if (action.created_run) {
        return [" ", h("a", { class: "name", href: `#/run/${segment(action.created_run)}` }, action.target)];
    }
    return action.target === "" ? null : ` ${action.target}`;
}

function statusOf(action) {
    const mark = h("span", { class: `delivery ${action.status}` }, action.status);
    if (action.ended) return [mark, h("span", { class: "quiet" }, " ", onClock(action.ended))];
    return action.due ? [mark, h("span", { class: "quiet" }, ", next ", untilDue(action.due))] : mark;
}
