// The event feed: server-sent events, read as a stream. `EventSource` cannot send the session, so this file parses the
// events, and reconnects with the id of the last event.

import { Problem, open } from "./api.js";

/** Delay before a reconnect, which doubles each time. */
const RETRY_FIRST_MS = 1000;
const RETRY_MAX_MS = 10_000;

/**
 * Listens until `stop` is called. It calls `onEvent(kind, value)` for each event, `onConnect(isFirst)` and
 * `onDisconnect()` when the connection opens and breaks, and `onSignedOut()` when the session has expired.
 */
export function listen({ onEvent, onConnect, onDisconnect, onSignedOut }) {
    const stopped = new AbortController();
    let lastId = null;
    let wait = RETRY_FIRST_MS;
    let isFirst = true;

    async function read() {
        const headers = lastId === null ? {} : { "last-event-id": lastId };
        const response = await open("/feed", {}, stopped.signal, { headers });
        wait = RETRY_FIRST_MS;
        onConnect(isFirst);
        isFirst = false;
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = "";
        for (;;) {
            const { value, done } = await reader.read();
            if (done) return;
            const events = (text + value).split("\n\n");
            text = events.pop();
            for (const event of events) handle(parse(event));
        }
    }

    function handle({ id, kind, data }) {
        if (id !== undefined) lastId = id;
        if (data !== "") onEvent(kind, parseOrNull(data));
    }

    async function run() {
        while (!stopped.signal.aborted) {
            try {
                await read();
            } catch (error) {
                if (stopped.signal.aborted) return;
                if (error instanceof Problem && error.isSignedOut) return onSignedOut();
            }
            if (stopped.signal.aborted) return;
            onDisconnect();
            await new Promise((go) => setTimeout(go, wait));
            wait = Math.min(wait * 2, RETRY_MAX_MS);
        }
    }

    run();
    return { stop: () => stopped.abort() };
}

/** Parses one event: lines of a field, a colon and a value. A line without a field name is a comment. */
function parse(text) {
    const event = { id: undefined, kind: "message", data: "" };
    for (const line of text.split("\n")) {
        const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
        if (field === "id") event.id = value;
        else if (field === "event") event.kind = value;
        else if (field === "data") event.data += (event.data && "\n") + value;
    }
    return event;
}

function parseOrNull(text) {
    try {
        return JSON.parse(text);
    } catch {
        return null;
    }
}
