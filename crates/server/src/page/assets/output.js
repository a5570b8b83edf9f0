// The output of a run, while it grows. It is read as a stream, drawn in batches, and the page keeps only the end of
// it: a program that writes for days must not fill somebody's browser.

import { Problem, open, outputPath, segment } from "./api.js";
import { Ansi } from "./ansi.js";
import { h } from "./dom.js";
import { sentence } from "./notice.js";

/** Characters that the page keeps. */
const KEPT_MAX = 2 << 20;
/** Characters in one piece of the page; whole pieces are dropped. */
const PIECE_MAX = 64 << 10;
/** Bytes that are read of what is there already: what lies before them would be dropped anyway. */
const READ_MAX = 2 << 20;
/** How long pieces are gathered before they are drawn. */
const DRAW_MS = 60;
/** How near to the end counts as at the end, in pixels. */
const NEAR_END = 24;
/** How often a stream that broke is taken up again, and how long is waited before. */
const RESUME_MAX = 100;
const RESUME_MS = 1500;

/** Shows the output of a run in `root` until `signal` aborts. */
export function showOutput(root, run, signal) {
    const pre = h("pre", { class: "output", tabindex: "0", role: "log", "aria-label": "Output", "aria-live": "off" });
    const note = h("p", { class: "quiet" });
    const toEnd = h("button", { type: "button", class: "to-end", hidden: true }, "↓ To the end");
    const file = `${run.job.replaceAll("/", "-")}-${run.number}.log`;
    const raw = h("a", { href: outputPath(run.id), download: file }, "Raw bytes");
    const heading = h("div", { class: "heading" }, h("h2", {}, "Output"), raw);
    root.append(heading, note, h("div", { class: "output-frame" }, pre, toEnd));
    const screen = new Screen(pre, note, toEnd);
    follow(run, screen, signal).catch((error) => {
        if (error.name !== "AbortError") screen.say(sentence("The output cannot be shown", error));
    });
}

async function follow(run, screen, signal) {
    const path = `/runs/${segment(run.id)}/output`;
    const { headers } = await open(path, {}, signal, "HEAD");
    if (headers.get("x-cronhold-output") === "gone") return screen.end("The output is not kept any longer.");
    let from = Math.max(0, Number(headers.get("content-length") ?? 0) - READ_MAX);
    if (from > 0) screen.leftOut();
    for (let tries = 0; tries < RESUME_MAX; tries += 1) {
        try {
            const response = await open(path, { from, follow: true }, signal);
            const reader = response.body.getReader();
            for (;;) {
                const { value, done } = await reader.read();
                if (done) return screen.end();
                from += value.length;
                screen.write(value);
            }
        } catch (error) {
            // A refusal stands; a connection that broke is taken up where it was.
            if (signal.aborted || (error instanceof Problem && error.status !== 0)) throw error;
            screen.say(["The connection broke; it is taken up again."]);
            await pause(RESUME_MS, signal);
            screen.say([]);
        }
    }
}

function pause(ms, signal) {
    return new Promise((go, stop) => {
        const timer = setTimeout(go, ms);
        signal.addEventListener("abort", () => {
            clearTimeout(timer);
            stop(new DOMException("left the view", "AbortError"));
        }, { once: true });
    });
}

/** The end of an output on the page. */
class Screen {
    #pre;
    #note;
    #toEnd;
    #ansi = new Ansi();
    #decoder = new TextDecoder();
    #waiting = "";
    #timer = null;
    #pieces = [];
    #kept = 0;
    #sticks = true;
    #isCut = false;

    constructor(pre, note, toEnd) {
        this.#pre = pre;
        this.#note = note;
        this.#toEnd = toEnd;
        this.say([]);
        pre.addEventListener("scroll", () => {
            this.#sticks = pre.scrollHeight - pre.scrollTop - pre.clientHeight < NEAR_END;
            toEnd.hidden = this.#sticks;
        });
        toEnd.addEventListener("click", () => {
            pre.scrollTop = pre.scrollHeight;
            pre.focus({ preventScroll: true });
        });
    }

    write(bytes) {
        this.#waiting += this.#decoder.decode(bytes, { stream: true });
        // A hidden page draws rarely; what would be dropped at once need not be kept until then.
        if (this.#waiting.length > 2 * KEPT_MAX) {
            this.#waiting = this.#waiting.slice(-KEPT_MAX);
            this.leftOut();
        }
        this.#timer ??= setTimeout(() => this.#draw(), DRAW_MS);
    }

    end(nothing = "Nothing was written.") {
        this.#waiting += this.#decoder.decode();
        this.#draw();
        this.#pre.dataset.ended = "";
        if (this.#kept === 0) this.#pre.append(h("span", { class: "nothing" }, nothing));
    }

    /** The beginning is not on the page. */
    leftOut() {
        if (this.#isCut) return;
        this.#isCut = true;
        this.say([]);
    }

    say(parts) {
        const cut = this.#isCut ? "Only the end is shown here; the raw bytes have everything that was kept. " : "";
        this.#note.replaceChildren(cut, ...parts.filter((part) => part !== null));
        this.#note.hidden = this.#note.textContent === "";
    }

    #draw() {
        clearTimeout(this.#timer);
        this.#timer = null;
        const text = this.#waiting;
        this.#waiting = "";
        for (let at = 0; at < text.length; at += PIECE_MAX) this.#append(text.slice(at, at + PIECE_MAX));
        while (this.#kept > KEPT_MAX && this.#pieces.length > 1) {
            const { element, length } = this.#pieces.shift();
            element.remove();
            this.#kept -= length;
            this.leftOut();
        }
        if (this.#sticks) this.#pre.scrollTop = this.#pre.scrollHeight;
    }

    #append(text) {
        const shown = this.#ansi.feed(text);
        if (shown.length === 0) return;
        // Small writes join the last piece, so that a program that writes letters does not make a piece of each.
        let last = this.#pieces.at(-1);
        if (!last || last.length > PIECE_MAX) {
            last = { element: h("span", { class: "piece" }), length: 0 };
            this.#pieces.push(last);
            this.#pre.append(last.element);
        }
        for (const piece of shown) {
            const isPlain = piece.classes === "";
            const end = last.element.lastChild;
            if (isPlain && end instanceof Text) end.appendData(piece.text);
            else last.element.append(isPlain ? piece.text : h("span", { class: piece.classes }, piece.text));
            last.length += piece.text.length;
            this.#kept += piece.text.length;
        }
    }
}
