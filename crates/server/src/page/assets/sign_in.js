// The sign-in form, for visitors without a session. It shows no data.

import { signIn } from "./api.js";
import { fill, h, prose } from "./dom.js";
import { sentence } from "./notice.js";

/**
 * Shows the form in `root`; `onSignedIn` is called when the daemon has accepted a token. `problem` says why a link was
 * refused, or is null.
 */
export function showSignInForm(root, onSignedIn, problem) {
    document.title = "Cronhold";
    const trouble = h("p", { class: "trouble", role: "alert" }, problem && sentence("", problem));
    const token = h("input", {
        id: "token", name: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false",
    });
    const submit = h("button", { class: "main" }, "Sign in");
    const form = h(
        "form",
        {},
        h("label", { for: "token" }, prose("Or paste the token from the file `token` in the data directory.")),
        h("div", { class: "line" }, token, submit),
        trouble,
    );
    form.addEventListener("submit", async (event) => {
        event.preventDefault();
        submit.disabled = true;
        try {
            await signIn(token.value.trim());
            onSignedIn();
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
            { class: "sign-in" },
            h("h1", {}, "You are not signed in"),
            h("p", {}, "On the machine where Cronhold runs, run"),
            h("pre", {}, "cronhold token link"),
            h("p", {}, "and open the link that it prints. Each link works once."),
            form,
        ),
    );
}
