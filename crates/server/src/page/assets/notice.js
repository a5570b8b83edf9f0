// Notices about the results of actions, and errors. They never block the page.

import { Problem } from "./api.js";
import { h, prose } from "./dom.js";

/** Most notices that are shown at once; the oldest is removed first. */
const NOTICES_MAX = 3;
/** How long a notice of success stays. */
const DONE_MS = 8000;

/** Shows that an action succeeded. `parts` are texts and elements. */
export function done(...parts) {
    const notice = add("done", parts);
    setTimeout(() => notice.remove(), DONE_MS);
}

/** Shows an error and its hint. The notice stays until the user closes it. */
export function failed(what, error) {
    if (error.name === "AbortError" || (error instanceof Problem && error.isSignedOut)) return;
    if (!(error instanceof Problem)) console.error(error);
    add("failed", sentence(what, error));
}

/** An error as elements: `what` failed, the reason, and the hint. */
export function sentence(what, error) {
    return [
        h("strong", {}, what ? `${what}: ` : "", prose(error.message)),
        error.hint ? h("span", { class: "hint" }, prose(error.hint)) : null,
    ];
}

/** Removes all notices. */
export function clear() {
    container().replaceChildren();
}

function add(kind, parts) {
    const close = h("button", { class: "close", type: "button", "aria-label": "Close this notice" }, "×");
    const role = kind === "failed" ? "alert" : "status";
    const notice = h("div", { class: `notice ${kind}`, role }, h("p", {}, ...parts), close);
    close.addEventListener("click", () => notice.remove());
    container().append(notice);
    while (container().children.length > NOTICES_MAX) container().firstElementChild.remove();
    return notice;
}

function container() {
    return document.getElementById("notices");
}
