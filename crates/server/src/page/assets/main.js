// Entry point of the page. It opens the view that the URL names, refreshes it on events from the feed, and shows the
// sign-in form if there is no session.

import { get, onSignedOut, signInWithCode } from "./api.js";
import { showSignInForm } from "./sign_in.js";
import { listen } from "./feed.js";
import { fill, h } from "./dom.js";
import * as notice from "./notice.js";
import * as job from "./job.js";
import * as jobs from "./jobs.js";
import * as run from "./run.js";
import * as runs from "./runs.js";
import * as task from "./task.js";
import * as tasks from "./tasks.js";

/** How long the feed may be disconnected before the page shows a warning. */
const UNREACHABLE_AFTER_MS = 1500;
/** How long a tab may be hidden before it closes the feed. */
const HIDDEN_MS = 10_000;
/** How often a view is refreshed without an event. */
const REFRESH_MS = 15_000;

const root = document.getElementById("view");
const statusBanner = document.getElementById("status-banner");
const linkState = document.getElementById("link-state");

let view = null;
let feed = null;
let isSignedIn = false;
let viewAbort = new AbortController();
let unreachableTimer = null;
let hiddenTimer = null;

/** Returns the view that the fragment of a URL names. */
function routeOf(hash) {
    const [path, search = ""] = hash.replace(/^#/, "").split("?", 2);
    const query = new URLSearchParams(search);
    const [, viewName, rest] = /^\/?([^/]*)\/?(.*)$/.exec(path);
    const id = decodeSegment(rest);
    if (viewName === "job" && id) return { module: job, name: "jobs", id, query };
    if (viewName === "run" && id) return { module: run, name: "runs", id, query };
    if (viewName === "task" && id) return { module: task, name: "tasks", id, query };
    if (viewName === "tasks") return { module: tasks, name: "tasks", query };
    if (viewName === "runs") return { module: runs, name: "runs", query };
    return { module: jobs, name: "jobs", query };
}

function decodeSegment(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return "";
    }
}

function show() {
    viewAbort.abort();
    viewAbort = new AbortController();
    notice.clear();
    const route = routeOf(location.hash);
    for (const link of document.querySelectorAll("nav [data-view]")) {
        if (link.dataset.view === route.name) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
    document.title = `${route.module.title(route)} · Cronhold`;
    // Replaces the URL without a `hashchange` event, which would reopen the view and take the focus from its filter.
    const replaceUrl = (hash) => history.replaceState(null, "", hash);
    view = route.module.open(root, { ...route, signal: viewAbort.signal, replaceUrl });
    scrollTo(0, 0);
}

/** Shows the sign-in form, and why a link was refused. */
function showSignIn(problem = null) {
    viewAbort.abort();
    feed?.stop();
    feed = null;
    view = null;
    isSignedIn = false;
    document.body.classList.add("signed-out");
    setUnreachable(false);
    notice.clear();
    showSignInForm(root, showViews, problem);
}

function showViews() {
    document.body.classList.remove("signed-out");
    isSignedIn = true;
    show();
    connectFeed();
}

function connectFeed() {
    feed?.stop();
    feed = listen({
        onEvent(kind, value) {
            if (kind === "store") showStoreState(value);
            if (kind === "reset") view?.refresh();
            else view?.onEvent(kind, value);
        },
        onConnect(isFirst) {
            setUnreachable(false);
            if (!isFirst) view?.refresh();
        },
        onDisconnect: () => setUnreachable(true),
        onSignedOut: () => showSignIn(),
    });
}

/** Shows or hides the warning that the daemon is unreachable. It appears with a delay, so short gaps stay silent. */
function setUnreachable(isUnreachable) {
    if (!isUnreachable) {
        clearTimeout(unreachableTimer);
        unreachableTimer = null;
        statusBanner.hidden = true;
        fill(linkState, feed ? h("span", { class: "live" }, "live") : null);
        return;
    }
    unreachableTimer ??= setTimeout(() => {
        fill(linkState);
        const text = "The daemon is unreachable. The data shown may be out of date; the page reconnects by itself.";
        fill(statusBanner, text);
        statusBanner.hidden = false;
    }, UNREACHABLE_AFTER_MS);
}

/** Warns while the store fails, because no run starts then. */
function showStoreState(change) {
    const reason = change?.trouble ?? "unknown reason";
    fill(statusBanner, `The store is unavailable. No runs start until it recovers: ${reason}`);
    statusBanner.hidden = !change?.failing;
}

addEventListener("hashchange", () => {
    if (isSignedIn) show();
});

// Browsers limit the connections to a host, and all tabs share them. So a hidden tab closes its feed.
document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) {
        hiddenTimer = setTimeout(() => {
            feed?.stop();
            feed = null;
        }, HIDDEN_MS);
    } else if (isSignedIn && feed === null) {
        connectFeed();
        view?.refresh();
    }
});

// The feed reports neither errors in job files nor the passing of time, which changes the next due times.
setInterval(() => {
    if (isSignedIn && !document.hidden) view?.refresh();
}, REFRESH_MS);

document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    root.focus();
});

onSignedOut(() => {
    if (isSignedIn) showSignIn();
});

/** Signs in with the code of a link, or checks for a session, before anything is drawn. */
async function start() {
    if (location.pathname === "/enter") {
        const code = location.hash.slice(1);
        history.replaceState(null, "", "/");
        try {
            await signInWithCode(code);
        } catch (error) {
            return showSignIn(error);
        }
    }
    try {
        await get("/jobs", { limit: 1 });
    } catch (error) {
        if (error.isSignedOut) return showSignIn();
    }
    showViews();
}

start();
