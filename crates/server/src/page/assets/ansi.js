// Converts ANSI escape sequences to CSS classes. Sequences for colour and weight become classes; others are dropped.
// The input arrives in pieces, which may end inside a sequence.

/** Longest escape sequence, in characters. An ESC without a complete sequence within this length is dropped. */
const SEQUENCE_MAX = 256;

const ESC = "\x1b";
// CSI … letter | OSC … BEL or ST | charset selection | two characters.
const SEQUENCE = /^\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+][\s\S]|[^[\]()*+])/;
// Control characters other than tab and newline, and characters that change the text direction.
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

const PLAIN = { fg: null, bg: null, bold: false, dim: false, italic: false, underline: false };

export class Ansi {
    #style = { ...PLAIN };
    #rest = "";

    /** Parses the next piece of input and returns its parts `{ text, classes }` in order. */
    feed(text) {
        let left = this.#rest + text;
        this.#rest = "";
        // Progress bars overwrite their line with a single carriage return. Here, each update becomes a line.
        if (left.endsWith("\r")) {
            this.#rest = "\r";
            left = left.slice(0, -1);
        }
        left = left.replaceAll("\r\n", "\n").replaceAll("\r", "\n");
        const pieces = [];
        while (left !== "") {
            const at = left.indexOf(ESC);
            if (at !== 0) {
                this.#push(pieces, at < 0 ? left : left.slice(0, at));
                left = at < 0 ? "" : left.slice(at);
                continue;
            }
            const found = SEQUENCE.exec(left);
            if (!found && left.length < SEQUENCE_MAX) {
                this.#rest = left + this.#rest;
                break;
            }
            if (found?.[2] === "m") this.#select(found[1]);
            left = left.slice(found ? found[0].length : 1);
        }
        return pieces;
    }

    #push(pieces, text) {
        const clean = text.replace(CONTROL, "");
        if (clean === "") return;
        const { fg, bg, bold, dim, italic, underline } = this.#style;
        const classes = [
            fg !== null && `fg${fg}`, bg !== null && `bg${bg}`, bold && "bold", dim && "dim",
            italic && "italic", underline && "underline",
        ].filter(Boolean).join(" ");
        pieces.push({ text: clean, classes });
    }

    #select(parameters) {
        const codes = parameters.split(/[;:]/).map(Number);
        const style = this.#style;
        for (let at = 0; at < codes.length; at += 1) {
            const code = codes[at];
            if (code === 0) Object.assign(style, PLAIN);
            else if (code === 1) style.bold = true;
            else if (code === 2) style.dim = true;
            else if (code === 3) style.italic = true;
            else if (code === 4) style.underline = true;
            else if (code === 22) style.bold = style.dim = false;
            else if (code === 23) style.italic = false;
            else if (code === 24) style.underline = false;
            else if (code >= 30 && code <= 37) style.fg = code - 30;
            else if (code === 39) style.fg = null;
            else if (code >= 40 && code <= 47) style.bg = code - 40;
            else if (code === 49) style.bg = null;
            else if (code >= 90 && code <= 97) style.fg = code - 82;
            else if (code >= 100 && code <= 107) style.bg = code - 92;
            else if (code === 38 || code === 48) {
                // Of the 256 indexed colours, the first 16 have classes. RGB colours have none.
                const isIndexed = codes[at + 1] === 5;
                const colour = isIndexed && codes[at + 2] < 16 ? codes[at + 2] : null;
                if (code === 38) style.fg = colour;
                else style.bg = colour;
                at += isIndexed ? 2 : 4;
            }
        }
    }
}
