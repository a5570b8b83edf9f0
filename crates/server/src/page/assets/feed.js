// What happens, as it happens. The browser reconnects by itself and says where it was; this file knows when that does
// not help: the daemon is away, or the session is over.

import { Problem, get } from "./api.js";

const KINDS = ["run", "job", "pause", "node", "store", "reset"];
/** The browser gives up after some answers; then it is asked anew after this long, and longer each time. */
const RETRY_FIRST_MS = 1000;
const RETRY_MOST_MS = 10_000;

/**
 * Listens until `stop` is called. `told(kind, value)` hears every event, `up(isFirst)` that the feed flows,
 * `down(why)` that it does not, and `signedOut()` that the session is over.
 */
export function listen({ told, up, down, signedOut }) {
    let source = null;
    let timer = null;
    let wait = RETRY_FIRST_MS;
    let isFirst = true;
    let stopped = false;

    function connect() {
        source = new EventSource("/api/v1/feed");
        source.onopen = () => {
            wait = RETRY_FIRST_MS;
            up(isFirst);
            isFirst = false;
        };
        source.onerror = lost;
        for (const kind of KINDS) {
            source.addEventListener(kind, (event) => told(kind, parsed(event.data)));
        }
    }

    async function lost() {
        down();
        if (source.readyState !== EventSource.CLOSED || timer !== null || stopped) return;
        timer = setTimeout(again, wait);
        wait = Math.min(wait * 2, RETRY_MOST_MS);
    }

    async function again() {
        try {
            await get("/jobs", { limit: 1 });
        } catch (error) {
            if (error instanceof Problem && error.isSignedOut && !stopped) return signedOut();
        }
        timer = null;
        if (!stopped) connect();
    }

    connect();
    return {
        stop() {
            stopped = true;
            clearTimeout(timer);
            source.close();
        },
    };
}

function parsed(text) {
    try {
        return JSON.parse(text);
    } catch {
        return null;
    }
}
