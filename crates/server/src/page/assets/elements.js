// Elements that several views share: links, states, rows of runs.

import { segment } from "./api.js";
import { h, prose } from "./dom.js";
import { fromNow, onClock, since, span } from "./time.js";

const ENDED = ["success", "failure", "error", "skipped"];

export function jobLink(id, text = id) {
    return h("a", { class: "name", href: `#/job/${segment(id)}` }, text);
}

export function runLink(run, text = `${run.job}#${run.number}`) {
    return h("a", { class: "name", href: `#/run/${segment(run.id)}` }, text);
}

/** A state as a coloured dot and its name. */
export function stateMark(state, title) {
    return h("span", { class: `state ${state}`, title }, state);
}

export function isEnded(run) {
    return ENDED.includes(run.state);
}

/** The number of occurrences that a run covers, if more than one. */
export function countOf(run) {
    return run.count > 1 ? h("span", { class: "quiet" }, ` ×${run.count}`) : null;
}

/** When a run started, or its nominal time if it has not. */
export function beginOf(run) {
    return run.times.running ?? run.times.starting ?? run.times.finished ?? run.nominal_time;
}

/** How long the program has run, or null if it has not started. */
export function tookOf(run) {
    const from = run.times.running ?? run.times.starting;
    if (!from) return null;
    return run.times.finished ? span(Date.parse(run.times.finished) - Date.parse(from)) : since(from);
}

/** The reason of a run's state, or what a waiting run waits for; empty if there is nothing to say. */
export function reasonOf(run) {
    const waits = run.waiting_for?.length ? `waits for ${run.waiting_for.join(" and ")}` : "";
    return run.reason ?? waits;
}

/** A run as a row: name, state, start, duration and reason. */
export function runRow(run, { withJob = true } = {}) {
    const name = withJob ? runLink(run) : runLink(run, `#${run.number}`);
    return h(
        "tr",
        { "data-run": run.id },
        h("td", { class: "wraps" }, name, run.attempt > 1 && h("span", { class: "quiet" }, ` attempt ${run.attempt}`)),
        h("td", {}, stateMark(run.state), countOf(run)),
        h("td", { class: "number" }, onClock(beginOf(run))),
        h("td", { class: "number" }, tookOf(run)),
        h("td", { class: "reason quiet" }, reasonOf(run)),
    );
}

/** A run as an item of two short lines, for a narrow column. */
export function runItem(run) {
    return h(
        "li",
        { "data-run": run.id },
        h("div", {}, runLink(run), h("span", {}, stateMark(run.state), countOf(run))),
        h("div", { class: "quiet" }, fromNow(beginOf(run)), took(run), reasonOf(run) ? ` · ${reasonOf(run)}` : null),
    );
}

function took(run) {
    const time = tookOf(run);
    return time === null ? null : [" · ", time];
}

/** Errors in job files, one item each. */
export function errorItems(errors) {
    return errors.map((error) =>
        h(
            "li",
            {},
            h("code", { class: "place" }, error.line ? `${error.file}:${error.line}:${error.column}` : error.file),
            " ",
            prose(error.message),
            error.hint ? h("span", { class: "hint" }, prose(error.hint)) : null,
        ),
    );
}

/** Describes a pause. */
export function pauseText(pause) {
    return [pause.everything ? "All jobs paused since " : "Paused since ", onClock(pause.since), pause.until ? [" until ", onClock(pause.until)] : null,
        ` by ${pause.by}`, pause.why ? `: ${pause.why}` : null];
}
