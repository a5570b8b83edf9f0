// Shows the output of a run and follows it. The output is read as a stream and drawn in batches. The page keeps only
// the end of it, so that a program that writes for days does not fill the browser's memory.

import { Problem, open, segment } from "./api.js";
import { Ansi } from "./ansi.js";
import { fill, h } from "./dom.js";
import { sentence } from "./notice.js";

/** Most characters that the page keeps. */
const KEPT_MAX = 2 << 20;
/** Characters in one element of the page; whole elements are dropped. */
const PIECE_MAX = 64 << 10;
/** Most bytes that are read of the existing output; the page would drop earlier ones. */
const READ_MAX = 2 << 20;
/** How long output is buffered before it is drawn. */
const DRAW_MS = 60;
/** Largest distance from the end at which the view still follows the output, in pixels. */
const NEAR_END = 24;
/** Most reconnects after a broken stream, and the delay before each. */
const RESUME_MAX = 100;
const RESUME_MS = 1500;

/** Shows the output of a run in `root` until `signal` aborts. */
export function showOutput(root, run, signal) {
    const pre = h("pre", { class: "output", tabindex: "0", role: "log", "aria-label": "Output", "aria-live": "off" });
    const note = h("p", { class: "quiet" });
    const toEnd = h("button", { type: "button", class: "to-end", hidden: true }, "↓ Jump to end");
    const file = `${run.job.replaceAll("/", "-")}-${run.number}.log`;
    const raw = h("button", { type: "button", onclick: () => download(run, file, note) }, "Download");
    const heading = h("div", { class: "heading" }, h("h2", {}, "Output"), raw);
    root.append(heading, note, h("div", { class: "output-frame" }, pre, toEnd));
    const screen = new Screen(pre, note, toEnd);
    follow(run, screen, signal).catch((error) => {
        if (error.name !== "AbortError") screen.showNote(sentence("Cannot load the output", error));
    });
}

/** Saves the stored output as a file. A plain link cannot do that, because it would not carry the session. */
async function download(run, file, note) {
    try {
        const response = await open(`/runs/${segment(run.id)}/output`);
        const url = URL.createObjectURL(await response.blob());
        h("a", { href: url, download: file }).click();
        URL.revokeObjectURL(url);
    } catch (error) {
        fill(note, sentence("Cannot download the output", error));
    }
}

async function follow(run, screen, signal) {
    const path = `/runs/${segment(run.id)}/output`;
    const { headers } = await open(path, {}, signal, { method: "HEAD" });
    if (headers.get("x-cronhold-output") === "gone") return screen.end("The output is no longer stored.");
    let from = Math.max(0, Number(headers.get("content-length") ?? 0) - READ_MAX);
    if (from > 0) screen.markTruncated();
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
            // An error response is final. A broken connection resumes at the same offset.
            if (signal.aborted || (error instanceof Problem && error.status !== 0)) throw error;
            screen.showNote(["Connection lost. Reconnecting…"]);
            await sleep(RESUME_MS, signal);
            screen.showNote([]);
        }
    }
}

function sleep(ms, signal) {
    return new Promise((go, stop) => {
        const timer = setTimeout(go, ms);
        signal.addEventListener("abort", () => {
            clearTimeout(timer);
            stop(new DOMException("left the view", "AbortError"));
        }, { once: true });
    });
}

/** The displayed end of an output. */
class Screen {
    #pre;
    #note;
    #toEnd;
    #ansi = new Ansi();
    #decoder = new TextDecoder();
    #pending = "";
    #timer = null;
    #pieces = [];
    #kept = 0;
    #followsEnd = true;
    #isTruncated = false;

    constructor(pre, note, toEnd) {
        this.#pre = pre;
        this.#note = note;
        this.#toEnd = toEnd;
        this.showNote([]);
        pre.addEventListener("scroll", () => {
            this.#followsEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < NEAR_END;
            toEnd.hidden = this.#followsEnd;
        });
        toEnd.addEventListener("click", () => {
            pre.scrollTop = pre.scrollHeight;
            pre.focus({ preventScroll: true });
        });
    }

    write(bytes) {
        this.#pending += this.#decoder.decode(bytes, { stream: true });
        // A hidden page draws rarely. Text that drawing would drop is dropped here already.
        if (this.#pending.length > 2 * KEPT_MAX) {
            this.#pending = this.#pending.slice(-KEPT_MAX);
            this.markTruncated();
        }
        this.#timer ??= setTimeout(() => this.#draw(), DRAW_MS);
    }

    end(emptyText = "No output.") {
        this.#pending += this.#decoder.decode();
        this.#draw();
        this.#pre.dataset.ended = "";
        if (this.#kept === 0) this.#pre.append(h("span", { class: "empty" }, emptyText));
    }

    /** Notes that the beginning of the output is not shown. */
    markTruncated() {
        if (this.#isTruncated) return;
        this.#isTruncated = true;
        this.showNote([]);
    }

    showNote(parts) {
        const hint = this.#isTruncated ? "Only the end is shown. Download the output to see all of it. " : "";
        this.#note.replaceChildren(hint, ...parts.filter((part) => part !== null));
        this.#note.hidden = this.#note.textContent === "";
    }

    #draw() {
        clearTimeout(this.#timer);
        this.#timer = null;
        const text = this.#pending;
        this.#pending = "";
        for (let at = 0; at < text.length; at += PIECE_MAX) this.#append(text.slice(at, at + PIECE_MAX));
        while (this.#kept > KEPT_MAX && this.#pieces.length > 1) {
            const { element, length } = this.#pieces.shift();
            element.remove();
            this.#kept -= length;
            this.markTruncated();
        }
        if (this.#followsEnd) this.#pre.scrollTop = this.#pre.scrollHeight;
    }

    #append(text) {
        const shown = this.#ansi.feed(text);
        if (shown.length === 0) return;
        // Small writes are added to the last piece, so that single characters do not become elements.
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
