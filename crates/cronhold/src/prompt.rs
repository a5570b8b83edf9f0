//! Questions on the terminal.

use std::io::{self, IsTerminal, Write};

/// The function that asks a question; `None` if standard input or standard error is not a terminal.
pub(crate) fn terminal() -> Option<fn(&str) -> bool> {
    (io::stdin().is_terminal() && io::stderr().is_terminal()).then_some(ask)
}

/// Asks a question, and returns whether the answer is yes. Without an answer it is no.
fn ask(question: &str) -> bool {
    let mut answer = String::new();
    let asked = write!(io::stderr(), "{question} [y/N] ").and_then(|()| io::stdin().read_line(&mut answer));
    asked.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
