// Times and durations as text. The tooltip has the exact time in the browser's time zone and in UTC.

import { h, setText } from "./dom.js";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const dayAndYear = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";

/** A time relative to now, such as `in 5 min`, which updates itself. */
export function fromNow(text) {
    return element(text, "from-now", relative(Date.parse(text) - Date.now()));
}

/** A due time relative to now. An overdue time is shown as `now`. */
export function untilDue(text) {
    return element(text, "until-due", relative(Math.max(0, Date.parse(text) - Date.now())));
}

/** The time of day, with the date if it is not today. */
export function onClock(text) {
    return element(text, "on-clock", absolute(new Date(text)));
}

/** The time of day with milliseconds, for events in quick succession. */
export function toTheMillisecond(text) {
    const date = new Date(text);
    return element(text, "on-clock", `${absolute(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`);
}

/** The duration since a time, which updates itself. */
export function since(text) {
    return element(text, "since", span(Date.now() - Date.parse(text)));
}

function element(text, kind, shown) {
    return h("time", { datetime: text, "data-shows": kind, title: exact(text) }, shown);
}

/** A duration in at most two units. */
export function span(ms) {
    if (ms < 0) return "0 s";
    if (ms < SECOND) return `${Math.round(ms)} ms`;
    if (ms < 10 * SECOND) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
    if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
    if (ms < HOUR) return pair(ms, MINUTE, "min", SECOND, "s");
    if (ms < DAY) return pair(ms, HOUR, "h", MINUTE, "min");
    return pair(ms, DAY, "d", HOUR, "h");
}

function pair(ms, large, largeName, small, smallName) {
    const first = Math.floor(ms / large);
    const rest = Math.floor((ms % large) / small);
    return rest === 0 ? `${first} ${largeName}` : `${first} ${largeName} ${rest} ${smallName}`;
}

function relative(ms) {
    const far = Math.abs(ms);
    if (far < SECOND) return "now";
    const unit = [[DAY, "d"], [HOUR, "h"], [MINUTE, "min"], [SECOND, "s"]].find(([length]) => far >= length);
    const count = `${Math.floor(far / unit[0])} ${unit[1]}`;
    return ms > 0 ? `in ${count}` : `${count} ago`;
}

function absolute(date) {
    const now = new Date();
    if (date.toDateString() === now.toDateString()) return clock.format(date);
    const date_ = date.getFullYear() === now.getFullYear() ? day.format(date) : dayAndYear.format(date);
    return `${date_.replace(",", "")} ${clock.format(date)}`;
}

function exact(text) {
    const date = new Date(text);
    if (Number.isNaN(date.getTime())) return text;
    const here = `${dayAndYear.format(date)} ${clock.format(date)} (${zone})`;
    return `${here}\n${date.toISOString().replace(".000Z", "Z")} (UTC)`;
}

/** Updates every relative time on the page. */
function tick() {
    const now = Date.now();
    for (const time of document.querySelectorAll("time[data-shows]")) {
        const at = Date.parse(time.dateTime);
        if (time.dataset.shows === "from-now") setText(time, relative(at - now));
        else if (time.dataset.shows === "until-due") setText(time, relative(Math.max(0, at - now)));
        else if (time.dataset.shows === "since") setText(time, span(now - at));
    }
}

setInterval(tick, SECOND);
