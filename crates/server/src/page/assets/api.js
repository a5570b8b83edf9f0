// The API client. Every request of the page goes through this file, and every failure becomes a `Problem` with a
// message and a hint.

const BASE = "/api/v1";
/**
 * Name of the session in the storage of this origin. It is not a cookie: browsers send cookies to every port of the
 * host, where another user of the machine may listen.
 */
const SESSION = "cronhold-session";
/** Longest error message that is taken from a plain-text response, in characters. */
const PROBLEM_TEXT_MAX = 300;

/** A failed request. `status` is 0 if the daemon did not reply. */
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

/** Escapes a job id or a run name for use as one path segment. */
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

/** Called when a response has status 401: the session is missing or has expired. */
let signedOut = () => {};

export function onSignedOut(call) {
    signedOut = call;
}

/** Returns the response itself, for outputs and events that are read as a stream. */
export async function open(path, query, signal, { method = "GET", headers } = {}) {
    const response = await send(BASE + path + search(query), { signal, method, headers });
    if (!response.ok) throw await failedResponse(response);
    return response;
}

/** Exchanges a token for a session: it requests a sign-in link with the token, then signs in with its code. */
export async function signIn(token) {
    if (!/^[\x21-\x7e]+$/.test(token)) throw new Problem({ status: 401, detail: "invalid token" });
    const response = await send(`${BASE}/link`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) throw await problemOf(response);
    await signInWithCode(new URL((await response.json()).url).hash.slice(1));
}

/** Exchanges the code of a sign-in link for a session. */
export async function signInWithCode(code) {
    const response = await send(`${BASE}/session`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ code }),
    });
    if (!response.ok) throw await problemOf(response);
    localStorage.setItem(SESSION, (await response.json()).session);
}

/** A random key for a request. If the request is repeated with the same key, the daemon creates one run only. */
export function idempotencyKey() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return "page-" + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function search(query) {
    const isGiven = ([, value]) => value !== undefined && value !== null && value !== "";
    const given = Object.entries(query ?? {}).filter(isGiven);
    return given.length === 0 ? "" : "?" + new URLSearchParams(given);
}

async function json(url, options) {
    const response = await send(url, options);
    if (!response.ok) throw await failedResponse(response);
    return response.status === 204 ? null : response.json();
}

async function send(url, options) {
    const session = localStorage.getItem(SESSION);
    const headers = { ...(session && { authorization: `Bearer ${session}` }), ...options.headers };
    try {
        return await fetch(url, { credentials: "omit", cache: "no-store", ...options, headers });
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Problem({ detail: "the daemon is unreachable", hint: "check that `cronhold up` is running" });
    }
}

async function failedResponse(response) {
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
        const detail = text.slice(0, PROBLEM_TEXT_MAX) || `the daemon replied with status ${response.status}`;
        return new Problem({ status: response.status, detail });
    }
}
