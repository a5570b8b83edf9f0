// The first view: all jobs in pages, and the latest runs beside them.

import { get } from "./api.js";
import { button, pause, resume, run } from "./actions.js";
import { Rows, fill, h, throttled } from "./dom.js";
import { failed, sentence } from "./notice.js";
import { errorItems, jobLink, pauseText, runItem, runLink, stateMark } from "./elements.js";
import { untilDue } from "./time.js";

/** Jobs on one page; few enough for a fast layout. */
const JOBS_PER_PAGE = 100;
const RUNS_SHOWN = 15;
/** Schedules of a job in the list; the view of the job shows all of them. */
const SCHEDULES_SHOWN = 2;
/** Shortest time between two requests for the lists, however many events arrive. */
const REFRESH_MS = 700;
/** How long the filter waits after the last key before it applies. */
const TYPING_MS = 200;

export const title = () => "Jobs";

export function open(root, { query, signal, replaceUrl }) {
    const filter = h("input", {
        type: "search", placeholder: "Filter jobs", "aria-label": "Filter jobs by name", value: query.get("find") ?? "",
        autocomplete: "off", spellcheck: "false", title: "Part of a name, or a pattern such as reports/*",
    });
    const pauseAll = () => pause(null).then(() => refresh());
    const everything = button("Pause all", "Cannot pause all jobs", pauseAll, { class: "plain", hidden: true });
    const banner = h("div", {});
    const body = h("tbody", {});
    const table = h("table", { class: "jobs" }, h("thead", {}, h("tr", {},
        ["Job", "Schedule", "Next", "Last run", ""].map((name) => h("th", { scope: "col" }, name)))), body);
    const none = h("div", { class: "none", hidden: true });
    const pager = h("nav", { class: "pager", "aria-label": "Pages" });
    const latest = h("ol", { class: "latest" });
    const noRuns = h("p", { class: "quiet" }, "None yet.");
    fill(root, h("div", { class: "columns" },
        h("section", {},
            h("div", { class: "heading" }, h("h1", {}, "Jobs"), filter, everything), banner, table, none, pager),
        h("aside", {},
            h("div", { class: "heading" }, h("h2", {}, "Latest runs"), h("a", { href: "#/runs" }, "All runs")),
            latest, noRuns)));

    const jobRows = new Rows(body, (job) => job.id, (job) => jobRow(job, refresh));
    const runRows = new Rows(latest, (run) => run.id, runItem);

    async function load() {
        const find = query.get("find") ?? "";
        const jobs = { match: pattern(find), after: query.get("after"), limit: JOBS_PER_PAGE };
        const runs = { limit: RUNS_SHOWN };
        const [list, { runs: recent }] = await Promise.all([get("/jobs", jobs, signal), get("/runs", runs, signal)]);
        jobRows.show(list.jobs);
        runRows.show(recent);
        noRuns.hidden = recent.length > 0;
        table.hidden = list.jobs.length === 0;
        none.hidden = list.jobs.length > 0;
        if (list.jobs.length === 0) fill(none, emptyText(find));
        fill(pager, pages(query, list.next));
        everything.hidden = list.pause !== null;
        fill(banner, list.pause && pausedBanner(list.pause, refresh),
            list.errors.length > 0 && h("ul", { class: "callout wrong errors" }, errorItems(list.errors)));
    }

    const refresh = throttled(REFRESH_MS, () => load().catch((error) => failed("Cannot load the jobs", error)));
    signal.addEventListener("abort", () => refresh.stop());

    let typing = null;
    filter.addEventListener("input", () => {
        clearTimeout(typing);
        typing = setTimeout(() => {
            query = new URLSearchParams(filter.value.trim() === "" ? {} : { find: filter.value.trim() });
            replaceUrl("#/" + (query.size > 0 ? `?${query}` : ""));
            load().catch((error) => failed("Cannot load the jobs", error));
        }, TYPING_MS);
    });

    load().catch((error) => fill(none, sentence("Cannot load the jobs", error)).hidden = error.isSignedOut);
    return { onEvent: refresh, refresh };
}

/** The filter as a pattern. Text without a wildcard matches any part of the name. */
function pattern(find) {
    if (find === "") return null;
    return /[*?]/.test(find) ? find : `*${find}*`;
}

function jobRow(job, refresh) {
    const marks = [
        job.paused && h("span", { class: "mark paused", title: job.pause?.why ?? "" }, "paused"),
        !job.enabled && h("span", { class: "mark label" }, "disabled"),
        job.errors.length > 0 && h("span", { class: "mark wrong" }, "invalid"),
        job.labels.map((label) => h("span", { class: "mark label" }, label)),
    ];
    const refreshAfter = (work) => () => work(job.id).then(refresh);
    const isDefined = job.source !== "";
    return h(
        "tr",
        { "data-job": job.id },
        h("td", { class: "wraps" }, jobLink(job.id), " ", marks,
            job.description ? h("div", { class: "quiet" }, job.description) : null,
            job.errors.length > 0 ? h("ul", { class: "errors" }, errorItems(job.errors)) : null),
        h("td", { class: "schedule", title: job.schedule || null }, schedulesOf(job)),
        h("td", { class: "next" }, job.next ? untilDue(job.next) : quiet("–")),
        h("td", { class: "last" }, lastOf(job)),
        h("td", { class: "actions" },
            isDefined && button("Run", `Cannot run ${job.id}`, refreshAfter(run)),
            isDefined && (job.paused && !job.pause?.everything
                ? button("Resume", `Cannot resume ${job.id}`, refreshAfter(resume))
                : button("Pause", `Cannot pause ${job.id}`, refreshAfter(pause)))),
    );
}

/** The schedules as they are written, one line each, with the time zone last. */
function schedulesOf(job) {
    if (job.schedule === "") return quiet(job.source === "" ? "–" : "manual");
    const all = job.schedule.split("; ");
    const lines = all.slice(0, SCHEDULES_SHOWN).map((text) => {
        const [, zone, rest] = /^CRON_TZ=(\S+) (.*)$/.exec(text) ?? [null, "", text];
        return h("div", { class: "one" }, h("code", { class: zone ? "whole" : null }, rest), zone && quiet(zone));
    });
    return [lines, all.length > SCHEDULES_SHOWN && quiet(`and ${all.length - SCHEDULES_SHOWN} more`)];
}

function lastOf(job) {
    if (!job.last) return quiet("–");
    const mark = stateMark(job.last.state, job.last.reason ?? undefined);
    const link = runLink(job.last, "");
    link.append(mark);
    link.setAttribute("aria-label", `${job.last.state}, ${job.last.job}#${job.last.number}`);
    return [link, job.active > 1 && quiet(` ${job.active} active`)];
}

function quiet(text) {
    return h("span", { class: "quiet" }, text);
}

function pausedBanner(details, refresh) {
    return h("div", { class: "paused-all" }, h("p", {}, pauseText(details)),
        button("Resume", "Cannot resume all jobs", () => resume(null).then(refresh)));
}

function emptyText(find) {
    if (find !== "") return h("p", {}, "No jobs match.");
    return [h("p", {}, "No jobs yet. Add a file to the jobs directory, or run"),
        h("pre", {}, 'cronhold add hello "* * * * *" -- echo hi')];
}

function pages(query, next) {
    const at = (after) => {
        const other = new URLSearchParams(query);
        if (after === null) other.delete("after");
        else other.set("after", after);
        return `#/${other.size > 0 ? `?${other}` : ""}`;
    };
    return [
        query.has("after") ? h("a", { href: at(null) }, "First page") : null,
        next ? h("a", { href: at(next) }, "Next page") : null,
    ];
}
