// Where the page begins: it finds the view that the address asks for, keeps it up to date by the feed, and shows the
// door when there is no session.

import { get, onSignedOut } from "./api.js";
import { showDoor } from "./enter.js";
import { listen } from "./feed.js";
import { fill, h } from "./dom.js";
import * as notice from "./notice.js";
import * as job from "./job.js";
import * as jobs from "./jobs.js";
import * as run from "./run.js";
import * as runs from "./runs.js";

/** How long the feed may be gone before the page says so. */
const AWAY_MS = 1500;
/** How long a tab may be hidden before it stops listening. */
const HIDDEN_MS = 10_000;
/** How often a view is brought up to date when nothing has happened. */
const LOOK_MS = 15_000;

const root = document.getElementById("view");
const away = document.getElementById("away");
const linkState = document.getElementById("link-state");

let view = null;
let feed = null;
let isInside = false;
let leave = new AbortController();
let awayTimer = null;
let hiddenTimer = null;

/** The view that an address asks for. */
function routed(hash) {
    const [path, search = ""] = hash.replace(/^#/, "").split("?", 2);
    const query = new URLSearchParams(search);
    const [, word, rest] = /^\/?([^/]*)\/?(.*)$/.exec(path);
    const id = decoded(rest);
    if (word === "job" && id) return { module: job, name: "jobs", id, query };
    if (word === "run" && id) return { module: run, name: "runs", id, query };
    if (word === "runs") return { module: runs, name: "runs", query };
    return { module: jobs, name: "jobs", query };
}

function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return "";
    }
}

function show() {
    leave.abort();
    leave = new AbortController();
    notice.clear();
    const route = routed(location.hash);
    for (const link of document.querySelectorAll("nav [data-view]")) {
        if (link.dataset.view === route.name) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
    document.title = `${route.module.title(route)} · Cronhold`;
    // A filter that someone types into belongs into the address, and must not take the field away from them.
    const go = (hash) => history.replaceState(null, "", hash);
    view = route.module.open(root, { ...route, signal: leave.signal, go });
    scrollTo(0, 0);
}

function door() {
    leave.abort();
    feed?.stop();
    feed = null;
    view = null;
    isInside = false;
    document.body.classList.add("outside");
    isAway(false);
    notice.clear();
    showDoor(root, begin);
}

function begin() {
    document.body.classList.remove("outside");
    isInside = true;
    show();
    follow();
}

/** Listens to what happens, as long as someone looks. */
function follow() {
    feed?.stop();
    feed = listen({
        told(kind, value) {
            if (kind === "store") storeIs(value);
            if (kind === "reset") view?.refresh();
            else view?.told(kind, value);
        },
        up(isFirst) {
            isAway(false);
            if (!isFirst) view?.refresh();
        },
        down: () => isAway(true),
        signedOut: door,
    });
}

/** A feed that comes back at once is nothing to speak of. */
function isAway(gone) {
    if (!gone) {
        clearTimeout(awayTimer);
        awayTimer = null;
        away.hidden = true;
        fill(linkState, feed ? h("span", { class: "live" }, "live") : null);
        return;
    }
    awayTimer ??= setTimeout(() => {
        fill(linkState);
        fill(away, "The daemon does not answer. What is shown may be old; the page goes on when it is back.");
        away.hidden = false;
    }, AWAY_MS);
}

/** While the store is away nothing starts, which someone who waits for a run should know. */
function storeIs(change) {
    fill(away, `The store is away, and nothing starts until it is back: ${change?.trouble ?? "nobody knows why"}`);
    away.hidden = !change?.away;
}

addEventListener("hashchange", () => {
    if (isInside) show();
});

// A browser has few connections to one host, which all its tabs share: a tab that nobody sees gives its own back.
document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) {
        hiddenTimer = setTimeout(() => {
            feed?.stop();
            feed = null;
        }, HIDDEN_MS);
    } else if (isInside && feed === null) {
        follow();
        view?.refresh();
    }
});

// Mistakes in files are no events, and times of the next run move on: now and then everything is looked at anew.
setInterval(() => {
    if (isInside && !document.hidden) view?.refresh();
}, LOOK_MS);

document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    root.focus();
});

onSignedOut(() => {
    if (isInside) door();
});

/** Asks once whether there is a session before anything is drawn. */
async function start() {
    try {
        await get("/jobs", { limit: 1 });
    } catch (error) {
        if (error.isSignedOut) return door();
    }
    begin();
}

start();
