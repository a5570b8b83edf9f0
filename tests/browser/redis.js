// A real Redis server in a temporary folder on a free port.

import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";

import { until } from "./daemon.js";

export class Redis {
    #process = null;
    #folder = fs.mkdtempSync(path.join(os.tmpdir(), "cronhold-redis-"));
    #port = 0;

    get url() {
        return `redis://127.0.0.1:${this.#port}`;
    }

    async start() {
        this.#port = await freePort();
        const options = ["--port", this.#port, "--bind", "127.0.0.1", "--dir", this.#folder, "--save", "", "--appendonly", "yes"];
        this.#process = spawn("redis-server", options.map(String), { stdio: "ignore" });
        await until("Redis answers", () => {
            if (this.#process.exitCode !== null) throw new Error("redis-server has ended");
            return this.cli("PING").trim() === "PONG";
        });
    }

    /** Runs a command with `redis-cli`. */
    cli(...words) {
        try {
            return execFileSync("redis-cli", ["-p", ...[this.#port, ...words].map(String)], { encoding: "utf8", stdio: "pipe" });
        } catch (error) {
            return error.stdout ?? "";
        }
    }

    async remove() {
        const ended = new Promise((go) => this.#process?.once("exit", go) ?? go());
        this.#process?.kill("SIGKILL");
        await ended;
        fs.rmSync(this.#folder, { recursive: true, force: true });
    }
}

function freePort() {
    return new Promise((go, fail) => {
        const server = net.createServer().once("error", fail);
        server.listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => go(port));
        });
    });
}
