// The view of a job: description, schedules, next times, why it runs or not, and its runs.

import { get, segment } from "./api.js";
import { button, pause, resume, run } from "./actions.js";
import { fill, h, prose, throttled } from "./dom.js";
import { failed, sentence } from "./notice.js";
import { peerTable } from "./peers.js";
import { runTable } from "./runs.js";
import { errorItems, pauseText } from "./elements.js";
import { onClock, untilDue } from "./time.js";

const NEXT_SHOWN = 8;
const REFRESH_MS = 700;

export const title = ({ id }) => id;

export function open(root, { id, query, signal }) {
    const head = h("div", {});
    const why = h("div", { class: "why" });
    const schedules = h("div", {});
    const next = h("div", {});
    const runs = h("div", {});
    const peers = h("div", {});
    const definition = h("pre", { class: "definition" });
    const rest = h("div", {},
        h("div", { class: "columns even" },
            h("section", {}, h("h2", {}, "Schedules"), schedules, h("h2", {}, "Why"), why),
            h("section", {}, h("h2", {}, "Next"), next)),
        h("section", {}, h("h2", {}, "Runs"), runs),
        peers,
        h("details", {}, h("summary", {}, "Definition"), definition));
    fill(root, head, rest);
    rest.hidden = true;

    let shown = "";
    async function load() {
        const path = `/jobs/${segment(id)}`;
        const detail = await get(path, null, signal);
        const isDefined = detail.source !== "";
        const fetchPart = (what, query) => (isDefined ? get(path + what, query, signal).catch((error) => error) : null);
        const [times, reasons] = await Promise.all([fetchPart("/next", { count: NEXT_SHOWN }), fetchPart("/why")]);
        // Redrawing would lose the selection, so it happens only after a change.
        const text = JSON.stringify([detail, times, reasons?.lines ?? null]);
        if (text === shown) return;
        shown = text;
        fill(head, heading(detail, refresh));
        fill(schedules, scheduleList(detail.schedules));
        fill(next, nextList(times));
        fill(why, whyLines(reasons));
        definition.textContent = detail.yaml;
        rest.hidden = !isDefined;
    }

    const show = () => load().catch((error) => failed("Cannot load the job", error));
    const refresh = throttled(REFRESH_MS, show);
    const table = runTable(runs, { signal, job: id, before: query.get("before"), here: `#/job/${segment(id)}` });
    if (!query.has("before")) peerTable(peers, { signal, job: id });
    signal.addEventListener("abort", () => refresh.stop());
    load().catch((error) => error.isSignedOut || fill(head, h("div", { class: "none" }, sentence("", error))));
    const both = () => {
        refresh();
        table.refresh();
    };
    return { onEvent: (kind, value) => (concerns(kind, value, id) ? both() : null), refresh: both };
}

/** Whether an event may change what this view shows. */
function concerns(kind, value, id) {
    if (kind === "run") return !value?.job || value.job === id;
    if (kind === "job") return !value?.id || value.id === id;
    return true;
}

function heading(detail, refresh) {
    const refreshAfter = (work) => () => work(detail.id).then(refresh);
    const actions = detail.source !== "" && h("div", { class: "buttons" },
        button("Run", "Cannot run the job", refreshAfter(run), { class: "main" }),
        detail.paused && !detail.pause?.everything
            ? button("Resume", "Cannot resume the job", refreshAfter(resume))
            : button("Pause", "Cannot pause the job", refreshAfter(pause)));
    return [
        h("div", { class: "heading" }, h("h1", { class: "name" }, detail.id), actions),
        h("p", { class: "marks" }, detail.labels.map((label) => h("span", { class: "mark label" }, label)),
            h("span", { class: "quiet" }, origin(detail))),
        detail.pause ? h("p", { class: "callout" }, pauseText(detail.pause)) : null,
        detail.errors.length > 0 && h("div", { class: "callout wrong" },
            h("p", {}, "The job file is invalid", detail.source === "" ? ":" : "; the last valid version is active:"),
            h("ul", { class: "errors" }, errorItems(detail.errors))),
        detail.text ? h("p", { class: "description" }, detail.text) : null,
    ];
}

function origin(detail) {
    const from = { api: "added by command or API", foreign: "from a foreign table", "": "" }[detail.source];
    return [from ?? "from a job file", detail.revision > 1 ? `, revision ${detail.revision}` : null];
}

function scheduleList(schedules) {
    const none = "No schedules. The job runs only when it is started explicitly.";
    if (schedules.length === 0) return h("p", { class: "quiet" }, none);
    return h("ul", { class: "schedules" }, schedules.map((schedule) =>
        h("li", { class: schedule.enabled ? null : "off" },
            h("div", {}, schedule.words || schedule.text),
            h("div", { class: "quiet" }, h("code", {}, schedule.text), schedule.enabled ? null : " · disabled",
                schedule.error ? h("span", { class: "trouble" }, ` · ${schedule.error}`) : null))));
}

function nextList(times) {
    if (times instanceof Error) return h("p", { class: "quiet" }, sentence("", times));
    if (!times || times.length === 0) return h("p", { class: "quiet" }, "No scheduled times.");
    return h("ol", { class: "next-times" }, times.map(({ at }) =>
        h("li", {}, onClock(at), " ", h("span", { class: "quiet" }, untilDue(at)))));
}

function whyLines(reasons) {
    if (reasons instanceof Error) return h("p", { class: "quiet" }, sentence("", reasons));
    return (reasons?.lines ?? []).map((line) => h("p", { class: `line ${toneOf(line.tone)}` }, prose(line.text)));
}

/** The class for the tone of a line. An unknown tone, of a newer daemon, counts as `detail`. */
function toneOf(tone) {
    return ["answer", "detail", "advice"].includes(tone) ? tone : "detail";
}
