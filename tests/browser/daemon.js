// The real daemon in a temporary folder on a free port, with a check that it leaves no processes behind.

import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BINARY = path.resolve(ROOT, process.env.CARGO_TARGET_DIR ?? "target", "debug", "cronhold");
/** Timeout for every wait. */
export const PATIENCE_MS = 30_000;
const POLL_MS = 25;

/** Polls `look` until it returns a truthy value, and returns that; after the timeout, fails with `what`. */
export async function until(what, look) {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
        const found = await look();
        if (found) return found;
        if (Date.now() > deadline) throw new Error(`timed out after ${PATIENCE_MS} ms: ${what}`);
        await new Promise((go) => setTimeout(go, POLL_MS));
    }
}

export class Daemon {
    #process = null;
    #folder = fs.mkdtempSync(path.join(os.tmpdir(), "cronhold-browser-"));
    #port = 0;
    /** Output of all its starts. */
    output = "";

    /** `jobs` maps paths below the jobs directory to file contents. */
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

    /** The one-time link that `--link` prints. */
    get printedLink() {
        return /http:\/\/\S+\/enter#\w+/.exec(this.output)?.[0];
    }

    /** Writes a job file. */
    write(name, text) {
        const file = path.join(this.#jobs, name);
        fs.mkdirSync(path.dirname(file), { recursive: true });
        fs.writeFileSync(file, text);
    }

    /** Starts the daemon and waits until it is ready. A restart uses the same port. */
    async start(environment = {}) {
        const listen = `127.0.0.1:${this.#port}`;
        const options = ["up", "--link", "--data", this.#data, "--jobs", this.#jobs, "--listen", listen];
        const child = spawn(BINARY, options, {
            env: { ...process.env, ...environment }, stdio: ["ignore", "pipe", "pipe"],
        });
        this.#process = child;
        for (const stream of [child.stdout, child.stderr]) {
            stream.setEncoding("utf8").on("data", (text) => (this.output += text));
        }
        await until("the daemon is ready", async () => {
            if (child.exitCode !== null) throw new Error(`the daemon ended with code ${child.exitCode}`);
            const address = readJson(path.join(this.#data, "address"));
            if (address?.pid !== child.pid) return false;
            this.#port = Number(new URL(address.url).port);
            return fetch(`${this.url}/ready`).then((response) => response.ok, () => false);
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

    /** Sends an API request with the token. */
    async request(method, route, body) {
        const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
        const options = { method, headers, body: body && JSON.stringify(body) };
        const response = await fetch(`${this.url}/api/v1${route}`, options);
        if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${await response.text()}`);
        return response.status === 204 ? null : response.json();
    }

    /** Requests a one-time link to the page. */
    async link() {
        return (await this.request("POST", "/link")).url;
    }

    /**
     * Stops the daemon and waits until all processes that it started have ended, including the keeper. Processes that
     * remain are killed, and the test fails.
     */
    async remove() {
        await this.stop();
        const left = () => processesNaming(this.#folder);
        try {
            await until("all processes have ended", () => left().length === 0);
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

/** Processes whose command line or environment contains a folder. */
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
