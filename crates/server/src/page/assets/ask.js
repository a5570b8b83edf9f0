// Questions before something is done: why, with which args, as what. A dialog of the browser, so that Escape, focus and
// screen readers work as everywhere.

import { h } from "./dom.js";

/**
 * Asks and answers with an object of the fields' values, or null when the asker changed their mind.
 * A field is `{ name, label, value, choices, required, note }`.
 */
export function ask({ title, text, fields = [], yes, isGrave = false }) {
    const submit = h("button", { class: isGrave ? "grave" : "main" }, yes);
    const cancel = h("button", { type: "button" }, "Cancel");
    const form = h(
        "form",
        { method: "dialog" },
        h("h2", {}, title),
        text ? h("p", {}, text) : null,
        fields.map(row),
        h("div", { class: "buttons" }, cancel, submit),
    );
    const dialog = h("dialog", { "aria-label": title }, form);
    document.body.append(dialog);
    return new Promise((answer) => {
        let given = null;
        form.addEventListener("submit", () => {
            given = Object.fromEntries(new FormData(form));
        });
        cancel.addEventListener("click", () => dialog.close());
        dialog.addEventListener("close", () => {
            dialog.remove();
            answer(given);
        });
        dialog.showModal();
        (form.querySelector("input, select") ?? submit).focus();
    });
}

function row(field) {
    const { name, label, value = "", choices, required = false, note } = field;
    const input = choices
        ? h("select", { name }, choices.map((choice) => h("option", { selected: choice === value }, choice)))
        : h("input", { name, value, required, autocomplete: "off", spellcheck: "false" });
    return h("label", {}, h("span", {}, label), input, note ? h("small", {}, note) : null);
}
