// A real daemon in a folder of its own on a free port, and the certainty that nothing of it is left behind.

import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BINARY = path.resolve(ROOT, process.env.CARGO_TARGET_DIR ?? "target", "debug", "cronhold");
/** How long anything may take before the test gives up. */
export const PATIENCE_MS = 30_000;
const POLL_MS = 25;

/** Waits until `look` answers with something; says what did not happen otherwise. */
export async function until(what, look) {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
        const found = await look();
        if (found) return found;
        if (Date.now() > deadline) throw new Error(`it did not happen in ${PATIENCE_MS} ms: ${what}`);
        await new Promise((go) => setTimeout(go, POLL_MS));
    }
}

export class Daemon {
    #process = null;
    #folder = fs.mkdtempSync(path.join(os.tmpdir(), "cronhold-browser-"));
    #port = 0;
    /** Everything that it has said, over all its starts. */
    said = "";

    /** Files by their paths below the jobs directory. */
    constructor(jobs) {
        fs.mkdirSync(this.#data);
        fs.mkdirSync(this.#jobs);
        for (const [name, text] of Object.entries(jobs)) this.write(name, text);
    }

    get #data() {
        return path.join(this.#folder, "data");
    }

    get #jobs() {
        return path.join(this.#folder, "jobs");
    }

    get url() {
        return `http://127.0.0.1:${this.#port}`;
    }

    get token() {
        return fs.readFileSync(path.join(this.#data, "token"), "utf8").trim();
    }

    /** The link that the first start prints. */
    get printedLink() {
        return /http:\/\/\S+\/enter\?once=\w+/.exec(this.said)?.[0];
    }

    /** Puts a job file. */
    write(name, text) {
        const file = path.join(this.#jobs, name);
        fs.mkdirSync(path.dirname(file), { recursive: true });
        fs.writeFileSync(file, text);
    }

    /** Starts it, again on the same port if it ran before, and waits until it is ready. */
    async start(environment = {}) {
        const listen = `127.0.0.1:${this.#port}`;
        const options = ["up", "--data", this.#data, "--jobs", this.#jobs, "--listen", listen];
        const child = spawn(BINARY, options, {
            env: { ...process.env, ...environment }, stdio: ["ignore", "pipe", "pipe"],
        });
        this.#process = child;
        for (const stream of [child.stdout, child.stderr]) {
            stream.setEncoding("utf8").on("data", (text) => (this.said += text));
        }
        await until("the daemon is ready", async () => {
            if (child.exitCode !== null) throw new Error(`the daemon ended with code ${child.exitCode}`);
            const address = readJson(path.join(this.#data, "address"));
            if (address?.pid !== child.pid) return false;
            this.#port = Number(new URL(address.url).port);
            return fetch(`${this.url}/ready`).then((answer) => answer.ok, () => false);
        });
    }

    async stop() {
        const child = this.#process;
        if (child === null || child.exitCode !== null) return;
        const ended = new Promise((go) => child.once("exit", go));
        child.kill("SIGTERM");
        await ended;
        this.#process = null;
    }

    /** Asks the API as someone with the token. */
    async ask(method, route, body) {
        const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
        const options = { method, headers, body: body && JSON.stringify(body) };
        const answer = await fetch(`${this.url}/api/v1${route}`, options);
        if (!answer.ok) throw new Error(`${method} ${route}: ${answer.status} ${await answer.text()}`);
        return answer.status === 204 ? null : answer.json();
    }

    /** A link for the page that works once. */
    async link() {
        return (await this.ask("POST", "/link")).url;
    }

    /**
     * Stops it and waits until everything it has started is gone, the keeper included. What does not go by itself is
     * killed, and is an error: a test run must leave nothing behind.
     */
    async remove() {
        await this.stop();
        const left = () => processesNaming(this.#folder);
        try {
            await until("all processes are gone", () => left().length === 0);
        } finally {
            for (const pid of left()) process.kill(pid, "SIGKILL");
            fs.rmSync(this.#folder, { recursive: true, force: true });
        }
    }
}

function readJson(file) {
    try {
        return JSON.parse(fs.readFileSync(file, "utf8"));
    } catch {
        return null;
    }
}

/** Processes whose command line or environment names a folder. */
function processesNaming(folder) {
    const pids = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number);
    const names = (pid, file) => {
        try {
            return fs.readFileSync(`/proc/${pid}/${file}`, "utf8").includes(folder);
        } catch {
            return false;
        }
    };
    return pids.filter((pid) => pid !== process.pid && (names(pid, "cmdline") || names(pid, "environ")));
}
