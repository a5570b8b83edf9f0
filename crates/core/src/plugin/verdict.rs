//! What the messages and the exit of a plug-in mean for its run.

use super::{MessageReader, PluginKind, PluginOutcome, PluginResult};
use crate::run::Reason;

/// What a plug-in has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginVerdict {
    /// Whether the program succeeded, or the condition holds.
    pub success: bool,
    /// Why; `None` for a plain success.
    pub reason: Option<Reason>,
}

/// Decides by the messages of a plug-in and by its exit. `exit` is the reason that the exit alone would give, and
/// `is_exit_success` whether it means success.
///
/// A result counts, unless it claims success and the exit contradicts it. Without a result the exit of a program counts;
/// an exit with success does not count if lines were not messages, because one of them may have been the result. A
/// condition without a result does not hold.
pub fn judge(messages: &MessageReader, exit: &Reason, is_exit_success: bool) -> PluginVerdict {
    let broken = |why: String| PluginVerdict { success: false, reason: Some(Reason::Plugin(why)) };
    let Some(PluginResult { outcome, message }) = messages.result() else {
        return match (is_exit_success, messages.first_problem()) {
            (false, _) => PluginVerdict { success: false, reason: Some(exit.clone()) },
            (true, Some(problem)) => broken(format!("ended without a result; {problem}")),
            (true, None) if messages.kind() == PluginKind::Condition => broken("ended without a result".to_owned()),
            (true, None) => PluginVerdict { success: true, reason: None },
        };
    };
    let said = |default: &str| {
        let message = if message.is_empty() { default } else { message.as_str() };
        Some(Reason::Said(message.to_owned()))
    };
    match outcome {
        PluginOutcome::Success | PluginOutcome::Holds if !is_exit_success => {
            broken(format!("reported `{}`, then ended with {exit}", outcome.name()))
        }
        PluginOutcome::Success | PluginOutcome::Holds => {
            PluginVerdict { success: true, reason: said("").filter(|_| !message.is_empty()) }
        }
        PluginOutcome::Failure => PluginVerdict { success: false, reason: said("failure, without a message") },
        PluginOutcome::DoesNotHold => PluginVerdict { success: false, reason: said("does not hold") },
        PluginOutcome::Error if message.is_empty() => broken("error, without a message".to_owned()),
        PluginOutcome::Error => broken(message.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(kind: PluginKind, text: &str, code: i32) -> String {
        let mut messages = MessageReader::new(kind);
        messages.read(text.as_bytes(), &mut drop);
        let PluginVerdict { success, reason } = judge(&messages, &Reason::ExitCode(code), code == 0);
        let reason = reason.map(|reason| format!(" {reason}")).unwrap_or_default();
        format!("{}{reason}", if success { "yes" } else { "no" })
    }

    fn result(outcome: &str, message: &str) -> String {
        format!("{{\"type\":\"result\",\"outcome\":\"{outcome}\",\"message\":\"{message}\"}}\n")
    }

    #[test]
    fn result_of_a_program_counts_and_its_exit_without_one() {
        let program = |text: &str, code| judged(PluginKind::Program, text, code);
        assert_eq!(program("", 0), "yes");
        assert_eq!(program("", 3), "no exit code 3");
        assert_eq!(
            program("noise\n", 0),
            "no plug-in: ended without a result; line 1: it is not JSON: expected ident at column 2"
        );
        assert_eq!(program("noise\n", 3), "no exit code 3");
        assert_eq!(program(&result("success", ""), 0), "yes");
        assert_eq!(program(&result("success", "3 rows"), 0), "yes said: 3 rows");
        assert_eq!(program(&format!("noise\n{}", result("success", "")), 0), "yes");
        assert_eq!(
            program(&result("success", "3 rows"), 3),
            "no plug-in: reported `success`, then ended with exit code 3"
        );
        for code in [0, 3] {
            assert_eq!(program(&result("failure", "no rows"), code), "no said: no rows");
            assert_eq!(program(&result("failure", ""), code), "no said: failure, without a message");
            assert_eq!(program(&result("error", "no network"), code), "no plug-in: no network");
            assert_eq!(program(&result("error", ""), code), "no plug-in: error, without a message");
        }
    }

    #[test]
    fn condition_holds_only_by_its_result() {
        let condition = |text: &str, code| judged(PluginKind::Condition, text, code);
        assert_eq!(condition("", 0), "no plug-in: ended without a result");
        assert_eq!(condition("", 3), "no exit code 3");
        assert_eq!(condition(&result("holds", ""), 0), "yes");
        assert_eq!(condition(&result("holds", ""), 1), "no plug-in: reported `holds`, then ended with exit code 1");
        assert_eq!(condition(&result("does_not_hold", "3 GB free"), 0), "no said: 3 GB free");
        assert_eq!(condition(&result("does_not_hold", ""), 1), "no said: does not hold");
        assert_eq!(condition(&result("error", "no such disk"), 0), "no plug-in: no such disk");
    }
}
