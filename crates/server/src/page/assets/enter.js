// The door: what someone sees who has no session. It shows nothing of what is behind it.

import { enter } from "./api.js";
import { fill, h, prose } from "./dom.js";
import { sentence } from "./notice.js";

/** Shows the door in `root`; `entered` is called when a token was good. */
export function showDoor(root, entered) {
    document.title = "Cronhold";
    const trouble = h("p", { class: "trouble", role: "alert" });
    const token = h("input", {
        id: "token", name: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false",
    });
    const submit = h("button", { class: "main" }, "Enter");
    const form = h(
        "form",
        {},
        h("label", { for: "token" }, prose("Or paste the token: the line in the file `token` of the data directory.")),
        h("div", { class: "line" }, token, submit),
        trouble,
    );
    form.addEventListener("submit", async (event) => {
        event.preventDefault();
        submit.disabled = true;
        try {
            await enter(token.value.trim());
            entered();
        } catch (error) {
            fill(trouble, sentence("", error));
            token.select();
        } finally {
            submit.disabled = false;
        }
    });
    fill(
        root,
        h(
            "section",
            { class: "door" },
            h("h1", {}, "You are not signed in"),
            h("p", {}, "On the machine where Cronhold runs, type"),
            h("pre", {}, "cronhold token link"),
            h("p", {}, "and open the link that it prints. A link works once."),
            form,
        ),
    );
}
