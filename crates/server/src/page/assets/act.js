// What can be done to jobs and runs. Each function asks what it must know, does it, and says what came of it.

import { get, idempotencyKey, post, segment } from "./api.js";
import { ask } from "./ask.js";
import { h } from "./dom.js";
import { done, failed } from "./notice.js";

const FINISHED = ["success", "failure", "error", "skipped"];

/** A button that does something, cannot be pressed twice meanwhile, and shows what went wrong. */
export function button(label, what, work, attributes) {
    const element = h("button", { type: "button", "data-act": label.toLowerCase(), ...attributes }, label);
    element.addEventListener("click", async () => {
        // Not `disabled`: that would take the focus away from whoever works with the keyboard.
        if (element.ariaDisabled === "true") return;
        element.ariaDisabled = "true";
        try {
            await work();
        } catch (error) {
            failed(what, error);
        } finally {
            element.ariaDisabled = "false";
        }
    });
    return element;
}

/** Runs a job now; asks for its args when it has params. Answers with the run that was made. */
export async function run(id) {
    const detail = await get(`/jobs/${segment(id)}`);
    const params = Object.entries(paramsOf(detail.definition));
    let args = {};
    if (params.length > 0) {
        const fields = params.map(([name, param]) => ({
            name,
            label: name,
            value: param?.default ?? "",
            choices: param?.choices,
            required: param?.default === undefined,
        }));
        args = await ask({ title: `Run ${id}`, fields, yes: "Run" });
        if (args === null) return null;
    }
    const made = await post(`/jobs/${segment(id)}/runs`, { args }, { "idempotency-key": idempotencyKey() });
    done("Started ", h("a", { href: `#/run/${segment(made.id)}` }, `${made.job}#${made.number}`));
    return made;
}

/** Params as a map of names, also when the job only lists them. */
function paramsOf(definition) {
    const params = definition?.params ?? {};
    return Array.isArray(params) ? Object.fromEntries(params.map((name) => [String(name), {}])) : params;
}

export async function pause(id) {
    const title = id === null ? "Pause everything" : `Pause ${id}`;
    const text = "Nothing is started by itself until someone resumes it. What runs goes on.";
    const given = await ask({ title, text, fields: [{ name: "why", label: "Why", note: "optional" }], yes: "Pause" });
    if (given === null) return;
    await post(id === null ? "/pause" : `/jobs/${segment(id)}/pause`, given);
    done(id === null ? "Everything is paused" : `Paused ${id}`);
}

export async function resume(id) {
    await post(id === null ? "/resume" : `/jobs/${segment(id)}/resume`);
    done(id === null ? "Resumed everything" : `Resumed ${id}`);
}

/** The buttons that a run has in its state. `after` is called when something was done. */
export function runButtons(detail, after) {
    const of = (verb) => `/runs/${segment(detail.id)}/${verb}`;
    const name = `${detail.job}#${detail.number}`;
    const plain = (label, what, verb, attributes) =>
        button(label, what, async () => after(await post(of(verb))), attributes);
    const state = detail.state;
    const is = (...states) => states.includes(state);
    return [
        is("scheduled", "waiting") && plain("Start now", "It was not started", "start", { "data-act": "start" }),
        is("scheduled", "waiting") && button("Skip", "It was not skipped", async () => {
            const fields = [{ name: "why", label: "Why", note: "optional" }];
            const given = await ask({ title: `Skip ${name}`, fields, yes: "Skip" });
            if (given !== null) after(await post(of("skip"), given));
        }),
        is("starting", "running") && plain("Stop", "It was not stopped", "stop"),
        is("running", "stopping") && button("Kill", "It was not killed", async () => {
            const text = "Its processes end at once and cannot clean up.";
            const given = await ask({ title: `Kill ${name}`, text, yes: "Kill", isGrave: true });
            if (given !== null) after(await post(of("kill")));
        }, { class: "grave" }),
        is(...FINISHED) && button("Rerun", "It was not run again", async () => {
            const made = await post(of("rerun"), {}, { "idempotency-key": idempotencyKey() });
            done("Started ", h("a", { href: `#/run/${segment(made.id)}` }, `${made.job}#${made.number}`));
        }),
        is(...FINISHED) && button("Mark", "It was not marked", async () => {
            const choices = FINISHED.filter((other) => other !== state);
            const fields = [{ name: "state", label: "As", choices }, { name: "why", label: "Why", note: "optional" }];
            const given = await ask({ title: `Mark ${name}`, fields, yes: "Mark" });
            if (given !== null) after(await post(of("mark"), given));
        }),
    ];
}
