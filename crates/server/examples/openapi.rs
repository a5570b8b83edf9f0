//! Prints the OpenAPI document, for the committed copy in docs/reference.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let text = serde_json::to_string_pretty(&cronhold_server::document())?;
    writeln!(io::stdout(), "{text}")
}
