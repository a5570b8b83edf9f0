// What the page has to say beside what it shows: something was done, or was not. It never stops anybody's work.

import { Problem } from "./api.js";
import { h, prose } from "./dom.js";

/** Notices at once; older ones make room. */
const NOTICES_MAX = 3;
/** How long good news stays. */
const DONE_MS = 8000;

/** Says that something was done. `parts` are texts and elements. */
export function done(...parts) {
    const notice = add("done", parts);
    setTimeout(() => notice.remove(), DONE_MS);
}

/** Says what went wrong, and what to do about it. It stays until someone closes it. */
export function failed(what, error) {
    if (error.name === "AbortError" || (error instanceof Problem && error.isSignedOut)) return;
    if (!(error instanceof Problem)) console.error(error);
    add("failed", sentence(what, error));
}

/** A problem as elements, for places that have nothing else to show. */
export function sentence(what, error) {
    return [
        h("strong", {}, what ? `${what}: ` : "", prose(error.message)),
        error.hint ? h("span", { class: "hint" }, prose(error.hint)) : null,
    ];
}

/** Takes all notices away. */
export function clear() {
    place().replaceChildren();
}

function add(kind, parts) {
    const close = h("button", { class: "close", type: "button", "aria-label": "Close this notice" }, "×");
    const role = kind === "failed" ? "alert" : "status";
    const notice = h("div", { class: `notice ${kind}`, role }, h("p", {}, ...parts), close);
    close.addEventListener("click", () => notice.remove());
    place().append(notice);
    while (place().children.length > NOTICES_MAX) place().firstElementChild.remove();
    return notice;
}

function place() {
    return document.getElementById("notices");
}
