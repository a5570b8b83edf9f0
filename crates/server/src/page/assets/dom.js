// Elements without markup. Names, outputs and messages come from strangers: they only ever become text nodes and
// attributes here, and the content policy forbids anything else.

/** An element with attributes (`on…` are listeners; null, undefined and false are left out) and children. */
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

/** Puts these children in place of whatever is there. */
export function fill(element, ...children) {
    const held = heldIn(element);
    element.replaceChildren(...flat(children));
    if (held) hold(element, held);
    return element;
}

/** A sentence in which `words like this` are code. */
export function prose(text) {
    const parts = text.split("`");
    // An odd one at the end opens what is never closed; it stays as it is.
    const last = parts.length % 2 === 0 ? ["`" + parts.pop()] : [];
    return [...parts.map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part)), ...last];
}

/** Sets a text only when it differs, so that a selection in it survives. */
export function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

function flat(children) {
    return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/**
 * Children of `parent` that follow a list: one element per item, found again by its key. An element is made anew only
 * when its item has changed, so that focus, hover and scrolling stay where they are.
 */
export class Rows {
    #parent;
    #key;
    #make;
    #known = new Map();

    constructor(parent, key, make) {
        this.#parent = parent;
        this.#key = key;
        this.#make = make;
    }

    show(items) {
        const before = this.#known;
        let held = null;
        this.#known = new Map();
        const elements = items.map((item) => {
            const key = this.#key(item);
            const text = JSON.stringify(item);
            const old = before.get(key);
            const kept = old?.text === text ? old.element : this.#make(item);
            if (old && kept !== old.element) held ??= moved(heldIn(old.element), kept);
            this.#known.set(key, { text, element: kept });
            return kept;
        });
        elements.forEach((element, at) => {
            const there = this.#parent.children[at];
            if (there !== element) this.#parent.insertBefore(element, there ?? null);
        });
        while (this.#parent.children.length > elements.length) this.#parent.lastElementChild.remove();
        if (held) hold(held.element, held.word);
    }
}

function moved(word, element) {
    return word === null ? null : { word, element };
}

/** What someone is on inside of an element, as a word that finds it again when the element is made anew. */
function heldIn(element) {
    const held = document.activeElement;
    return element.contains(held) ? (held.dataset.act ?? "link") : null;
}

function hold(element, word) {
    const twin = [...element.querySelectorAll("[data-act]")].find((button) => button.dataset.act === word);
    (twin ?? element.querySelector("a, button"))?.focus({ preventScroll: true });
}

/** Calls `work` soon, never twice at once, and at most once per `pause` milliseconds however often it is asked. */
export function paced(pause, work) {
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
    function ask() {
        if (stopped || timer !== null) return;
        if (busy) again = true;
        else timer = setTimeout(go, pause);
    }
    ask.stop = () => {
        stopped = true;
        clearTimeout(timer);
    };
    return ask;
}
