//! Which names templates can use, by the key that holds them. The code that checks templates, the code that binds them
//! and the guide share this table.

/// Where a template is used, which decides which names are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateScope {
    /// Program, conditions, environment: bound when a run is created.
    Run,
    /// `poll` and `cancel` of a remote task: bound when the task has started.
    Remote,
    /// `success` and `failure` of a remote task: bound when a poll has returned.
    Answer,
    /// Actions: bound when a run enters a state.
    Action,
    /// Args of a trigger: bound when a message arrives. There is no run yet, so there are no params.
    Trigger,
}

/// A name that is bound without being a param of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateName {
    /// The name as templates write it.
    pub name: &'static str,
    /// The meaning of its value, as in the guide.
    pub meaning: &'static str,
    /// The scopes in which it is bound.
    pub scopes: &'static [TemplateScope],
}

/// All names that are bound without being a param.
pub const NAMES: [TemplateName; 13] = [
    TemplateName { name: "run_id", meaning: "the run's id, 32 hex digits", scopes: OF_A_RUN },
    TemplateName { name: "job", meaning: "the job's id", scopes: &TemplateScope::ALL },
    TemplateName { name: "nominal_time", meaning: "the instant the run is for, in UTC", scopes: OF_A_RUN },
    TemplateName { name: "attempt", meaning: "1, and one more with each retry", scopes: OF_A_RUN },
    TemplateName {
        name: "task",
        meaning: "the JSON response to `start`",
        scopes: &[TemplateScope::Remote, TemplateScope::Answer],
    },
    TemplateName { name: "answer", meaning: "the JSON response to `poll`", scopes: &[TemplateScope::Answer] },
    TemplateName { name: "number", meaning: "the run's number in its job", scopes: &[TemplateScope::Action] },
    TemplateName { name: "state", meaning: "the state that the run has entered", scopes: &[TemplateScope::Action] },
    TemplateName { name: "reason", meaning: "why, or an empty text", scopes: &[TemplateScope::Action] },
    TemplateName {
        name: "missed_count",
        meaning: "with the event `missed`, how many occurrences did not run; otherwise 0",
        scopes: &[TemplateScope::Action],
    },
    TemplateName {
        name: "missed_until",
        meaning: "with the event `missed`, the instant of the last of these occurrences, in UTC; otherwise an empty text",
        scopes: &[TemplateScope::Action],
    },
    TemplateName {
        name: "message",
        meaning: "the message: its text, or the JSON value, such as `message.id`",
        scopes: &[TemplateScope::Trigger],
    },
    TemplateName { name: "channel", meaning: "the channel it came from", scopes: &[TemplateScope::Trigger] },
];

/// The scopes that have a run.
const OF_A_RUN: &[TemplateScope] =
    &[TemplateScope::Run, TemplateScope::Remote, TemplateScope::Answer, TemplateScope::Action];

impl TemplateScope {
    pub const ALL: [Self; 5] = [Self::Run, Self::Remote, Self::Answer, Self::Action, Self::Trigger];

    /// The name of the scope in messages and in the guide.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Run => "programs, conditions, `env` and `cwd`",
            Self::Remote => "`poll` and `cancel`",
            Self::Answer => "`success` and `failure` of a remote task",
            Self::Action => "actions",
            Self::Trigger => "args of triggers",
        }
    }

    /// Names that can be used here besides params.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |name| name.scopes.contains(&self)).map(|name| name.name)
    }

    /// Whether a name can be used here without being a param.
    pub fn has(self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Whether params can be used here.
    pub fn has_params(self) -> bool {
        self != Self::Trigger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_has_its_names() {
        for (scope, names) in [
            (TemplateScope::Run, "run_id job nominal_time attempt"),
            (TemplateScope::Remote, "run_id job nominal_time attempt task"),
            (TemplateScope::Answer, "run_id job nominal_time attempt task answer"),
            (TemplateScope::Action, "run_id job nominal_time attempt number state reason missed_count missed_until"),
            (TemplateScope::Trigger, "job message channel"),
        ] {
            assert_eq!(scope.names().collect::<Vec<_>>().join(" "), names, "{scope:?}");
            assert_eq!(scope.has_params(), scope.has("run_id"), "{scope:?}");
        }
    }
}
