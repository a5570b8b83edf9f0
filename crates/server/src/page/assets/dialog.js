// Dialogs that collect input before an action. They use the browser's `dialog` element, so Escape, focus and screen
// readers work as usual.

import { h } from "./dom.js";

/**
 * Opens a dialog. Resolves to an object with the values of the fields, or to null if the user cancels.
 * A field is `{ name, label, value, choices, required, note }`.
 */
export function openDialog({ title, text, fields = [], submitLabel, isDestructive = false }) {
    const submit = h("button", { class: isDestructive ? "danger" : "main" }, submitLabel);
    const cancel = h("button", { type: "button" }, "Cancel");
    const form = h(
        "form",
        { method: "dialog" },
        h("h2", {}, title),
        text ? h("p", {}, text) : null,
        fields.map(fieldRow),
        h("div", { class: "buttons" }, cancel, submit),
    );
    const dialog = h("dialog", { "aria-label": title }, form);
    document.body.append(dialog);
    return new Promise((resolve) => {
        let given = null;
        form.addEventListener("submit", () => {
            given = Object.fromEntries(new FormData(form));
        });
        cancel.addEventListener("click", () => dialog.close());
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(given);
        });
        dialog.showModal();
        (form.querySelector("input, select") ?? submit).focus();
    });
}

function fieldRow(field) {
    const { name, label, value = "", choices, required = false, note } = field;
    const input = choices
        ? h("select", { name }, choices.map((choice) => h("option", { selected: choice === value }, choice)))
        : h("input", { name, value, required, autocomplete: "off", spellcheck: "false" });
    return h("label", {}, h("span", {}, label), input, note ? h("small", {}, note) : null);
}
