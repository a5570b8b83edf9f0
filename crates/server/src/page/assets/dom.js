// Creates and updates elements without parsing markup. Names, outputs and messages are untrusted: they become text
// nodes and attributes only, and the content security policy forbids anything else.

/** An element with attributes (`on…` are listeners; null, undefined and false are omitted) and children. */
export function h(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...flat(children));
    return element;
}

/** Replaces the children of an element, and keeps the focus inside it. */
export function fill(element, ...children) {
    const focusKey = focusKeyIn(element);
    element.replaceChildren(...flat(children));
    if (focusKey) restoreFocus(element, focusKey);
    return element;
}

/** Converts text between backticks to `code` elements. */
export function prose(text) {
    const parts = text.split("`");
    // The last backtick has no partner; it stays as text.
    const last = parts.length % 2 === 0 ? ["`" + parts.pop()] : [];
    return [...parts.map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part)), ...last];
}

/** Sets the text only if it differs, so that a selection in it is kept. */
export function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

function flat(children) {
    return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/**
 * Keeps the children of `parent` in step with a list: one element per item, identified by its key. An element is
 * replaced only if its item has changed, so focus, hover and scroll position are kept.
 */
export class Rows {
    #parent;
    #key;
    #make;
    #entries = new Map();

    constructor(parent, key, make) {
        this.#parent = parent;
        this.#key = key;
        this.#make = make;
    }

    show(items) {
        const before = this.#entries;
        let refocus = null;
        this.#entries = new Map();
        const elements = items.map((item) => {
            const key = this.#key(item);
            const text = JSON.stringify(item);
            const old = before.get(key);
            const kept = old?.text === text ? old.element : this.#make(item);
            if (old && kept !== old.element) refocus ??= refocusFor(focusKeyIn(old.element), kept);
            this.#entries.set(key, { text, element: kept });
            return kept;
        });
        elements.forEach((element, at) => {
            const there = this.#parent.children[at];
            if (there !== element) this.#parent.insertBefore(element, there ?? null);
        });
        while (this.#parent.children.length > elements.length) this.#parent.lastElementChild.remove();
        if (refocus) restoreFocus(refocus.element, refocus.focusKey);
    }
}

function refocusFor(focusKey, element) {
    return focusKey === null ? null : { focusKey, element };
}

/** A key for the focused element inside `element`, which finds its replacement; null if the focus is elsewhere. */
function focusKeyIn(element) {
    const focused = document.activeElement;
    return element.contains(focused) ? (focused.dataset.action ?? "link") : null;
}

function restoreFocus(element, focusKey) {
    const buttons = [...element.querySelectorAll("[data-action]")];
    const twin = buttons.find((button) => button.dataset.action === focusKey);
    (twin ?? element.querySelector("a, button"))?.focus({ preventScroll: true });
}

/** Returns a function that schedules `work`: at most once per `pause` milliseconds, and never concurrently. */
export function throttled(pause, work) {
    let timer = null;
    let busy = false;
    let again = false;
    let stopped = false;
    async function go() {
        timer = null;
        busy = true;
        again = false;
        try {
            await work();
        } finally {
            busy = false;
            if (again && !stopped) timer = setTimeout(go, pause);
        }
    }
    function request() {
        if (stopped || timer !== null) return;
        if (busy) again = true;
        else timer = setTimeout(go, pause);
    }
    request.stop = () => {
        stopped = true;
        clearTimeout(timer);
    };
    return request;
}
