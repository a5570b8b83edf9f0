// Actions on jobs and runs. Each function opens a dialog if it needs input, sends the request, and shows the result.

import { get, idempotencyKey, post, segment } from "./api.js";
import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { done, failed } from "./notice.js";

const FINISHED = ["success", "failure", "error", "skipped"];
const REASON_FIELD = { name: "why", label: "Reason", note: "optional" };

/**
 * A button that calls `work` and ignores clicks until it has finished. An error is shown as a notice that begins with
 * `failure`.
 */
export function button(label, failure, work, attributes) {
    const element = h("button", { type: "button", "data-action": label.toLowerCase(), ...attributes }, label);
    element.addEventListener("click", async () => {
        // Not `disabled`: a disabled button loses the keyboard focus.
        if (element.ariaDisabled === "true") return;
        element.ariaDisabled = "true";
        try {
            await work();
        } catch (error) {
            failed(failure, error);
        } finally {
            element.ariaDisabled = "false";
        }
    });
    return element;
}

/** Starts a run of a job, with a dialog for args if the job has params. Returns the run, or null if canceled. */
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
        args = await openDialog({ title: `Run ${id}`, fields, submitLabel: "Run" });
        if (args === null) return null;
    }
    const made = await post(`/jobs/${segment(id)}/runs`, { args }, { "idempotency-key": idempotencyKey() });
    done("Started ", h("a", { href: `#/run/${segment(made.id)}` }, `${made.job}#${made.number}`));
    return made;
}

/** Params as a map from name to definition. A job may also list only the names. */
function paramsOf(definition) {
    const params = definition?.params ?? {};
    return Array.isArray(params) ? Object.fromEntries(params.map((name) => [String(name), {}])) : params;
}

export async function pause(id) {
    const title = id === null ? "Pause all jobs" : `Pause ${id}`;
    const text = "Schedules start no runs until you resume. Active runs continue.";
    const given = await openDialog({ title, text, fields: [REASON_FIELD], submitLabel: "Pause" });
    if (given === null) return;
    await post(id === null ? "/pause" : `/jobs/${segment(id)}/pause`, given);
    done(id === null ? "Paused all jobs" : `Paused ${id}`);
}

export async function resume(id) {
    await post(id === null ? "/resume" : `/jobs/${segment(id)}/resume`);
    done(id === null ? "Resumed all jobs" : `Resumed ${id}`);
}

/** The buttons for a run in its state. `after` is called when a request has succeeded. */
export function runButtons(detail, after) {
    const of = (verb) => `/runs/${segment(detail.id)}/${verb}`;
    const name = `${detail.job}#${detail.number}`;
    const plain = (label, failure, verb, attributes) =>
        button(label, failure, async () => after(await post(of(verb))), attributes);
    const state = detail.state;
    const is = (...states) => states.includes(state);
    return [
        is("scheduled", "waiting") && plain("Start now", "Cannot start the run", "start", { "data-action": "start" }),
        is("scheduled", "waiting") && button("Skip", "Cannot skip the run", async () => {
            const fields = [REASON_FIELD];
            const given = await openDialog({ title: `Skip ${name}`, fields, submitLabel: "Skip" });
            if (given !== null) after(await post(of("skip"), given));
        }),
        is("starting", "running") && plain("Stop", "Cannot stop the run", "stop"),
        is("running", "stopping") && button("Kill", "Cannot kill the run", async () => {
            const text = "The processes end immediately, without cleanup.";
            const given = await openDialog({ title: `Kill ${name}`, text, submitLabel: "Kill", isDestructive: true });
            if (given !== null) after(await post(of("kill")));
        }, { class: "danger" }),
        is(...FINISHED) && button("Rerun", "Cannot rerun", async () => {
            const made = await post(of("rerun"), {}, { "idempotency-key": idempotencyKey() });
            done("Started ", h("a", { href: `#/run/${segment(made.id)}` }, `${made.job}#${made.number}`));
        }),
        is(...FINISHED) && button("Mark", "Cannot mark the run", async () => {
            const choices = FINISHED.filter((other) => other !== state);
            const fields = [{ name: "state", label: "New state", choices }, REASON_FIELD];
            const given = await openDialog({ title: `Mark ${name}`, fields, submitLabel: "Mark" });
            if (given !== null) after(await post(of("mark"), given));
        }),
    ];
}
