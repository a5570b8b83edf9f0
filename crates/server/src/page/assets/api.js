// Talking to the daemon: every request of the page goes through here, and everything that can be wrong comes back as
// one kind of error with a sentence and a hint.

const BASE = "/api/v1";
/** Answers that are only text are not read further than this into an error. */
const PROBLEM_TEXT_MAX = 300;

/** Something was not done. */
export class Problem extends Error {
    constructor({ status = 0, code = "unavailable", detail, hint = null }) {
        super(detail);
        this.status = status;
        this.code = code;
        this.hint = hint;
    }

    get isSignedOut() {
        return this.status === 401;
    }
}

/** A job's id or a run's name as one segment of a path. */
export const segment = encodeURIComponent;

export function get(path, query, signal) {
    return json(BASE + path + search(query), { signal });
}

export function post(path, body, headers) {
    return json(BASE + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body ?? {}),
    });
}

/** Called when an answer says that there is no session any more. */
let signedOut = () => {};

export function onSignedOut(call) {
    signedOut = call;
}

/** The raw answer, for outputs that are read while they grow. */
export async function open(path, query, signal, method = "GET") {
    const response = await ask(BASE + path + search(query), { signal, method });
    if (!response.ok) throw await refused(response);
    return response;
}

/** Exchanges a token for a session: with the token one may ask for a link, and opening the link makes the session. */
export async function enter(token) {
    if (!/^[\x21-\x7e]+$/.test(token)) throw new Problem({ status: 401, detail: "this is no token" });
    const response = await ask(`${BASE}/link`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) throw await problemOf(response);
    const link = new URL((await response.json()).url);
    await ask(link.pathname + link.search, { redirect: "manual" });
}

/** A word that no other request has: asked for twice with it, a run is made once. */
export function idempotencyKey() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return "page-" + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function outputPath(run) {
    return `${BASE}/runs/${segment(run)}/output`;
}

function search(query) {
    const isGiven = ([, value]) => value !== undefined && value !== null && value !== "";
    const given = Object.entries(query ?? {}).filter(isGiven);
    return given.length === 0 ? "" : "?" + new URLSearchParams(given);
}

async function json(url, options) {
    const response = await ask(url, options);
    if (!response.ok) throw await refused(response);
    return response.status === 204 ? null : response.json();
}

async function ask(url, options) {
    try {
        return await fetch(url, { credentials: "same-origin", cache: "no-store", ...options });
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Problem({ detail: "the daemon does not answer", hint: "is `cronhold up` running?" });
    }
}

async function refused(response) {
    const problem = await problemOf(response);
    if (problem.isSignedOut) signedOut();
    return problem;
}

async function problemOf(response) {
    const text = await response.text().catch(() => "");
    try {
        const { code, detail, hint } = JSON.parse(text);
        return new Problem({ status: response.status, code, detail: detail ?? `status ${response.status}`, hint });
    } catch {
        const detail = text.slice(0, PROBLEM_TEXT_MAX) || `the daemon answered with status ${response.status}`;
        return new Problem({ status: response.status, detail });
    }
}
