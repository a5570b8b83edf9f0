//! The program `remote` in scripts. `task #1 JSON` is the report that its service has started a task.

use crate::job::{HttpProgram, Program, RemoteProgram};
use crate::template::{Expression, Template};

/// A task that is polled and can be cancelled.
pub(super) fn program() -> Program {
    let request = |url: &str| HttpProgram::new(Template::parse(url).expect("a template"));
    let expression = |text: &str| Expression::parse(text).expect("an expression");
    Program::Remote(Box::new(RemoteProgram {
        start: request("http://a.example/{{ run_id }}"),
        poll: request("http://a.example/{{ task.id }}"),
        every: RemoteProgram::EVERY_DEFAULT,
        success: expression("answer.done"),
        failure: expression("answer.failed"),
        cancel: Some(request("http://a.example/{{ task.id }}/cancel")),
    }))
}
