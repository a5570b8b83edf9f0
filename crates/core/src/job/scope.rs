//! Which names templates can use, by the place they stand at: one table, for those who check templates, those who bind
//! them and the guide.

/// The place of a template, which decides what is known when it is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Program, conditions, environment: bound when a run is created.
    Run,
    /// Poll and cancel of a remote task: bound when it has been started.
    Remote,
    /// `success` and `failure` of a remote task: bound when a poll was answered.
    Answer,
    /// Actions: bound when a run has changed its state.
    Action,
    /// Args of a trigger: bound when a message has come. There is no run yet, so there are no params.
    Trigger,
}

/// A name that is bound without being a param.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// As it is written.
    pub name: &'static str,
    /// What it stands for.
    pub meaning: &'static str,
    /// Where it is known.
    pub scopes: &'static [Scope],
}

/// Every such name.
pub const NAMES: [Name; 11] = [
    Name { name: "run_id", meaning: "the run's id, 32 hex digits", scopes: OF_A_RUN },
    Name { name: "job", meaning: "the job's id", scopes: &Scope::ALL },
    Name { name: "nominal_time", meaning: "the instant the run is for, in UTC", scopes: OF_A_RUN },
    Name { name: "attempt", meaning: "1, and one more with each retry", scopes: OF_A_RUN },
    Name { name: "task", meaning: "the JSON that answered `start`", scopes: &[Scope::Remote, Scope::Answer] },
    Name { name: "answer", meaning: "the JSON that answered `poll`", scopes: &[Scope::Answer] },
    Name { name: "number", meaning: "the run's number in its job", scopes: &[Scope::Action] },
    Name { name: "state", meaning: "the state that the run has entered", scopes: &[Scope::Action] },
    Name { name: "reason", meaning: "why, or an empty text", scopes: &[Scope::Action] },
    Name { name: "message", meaning: "the message's text", scopes: &[Scope::Trigger] },
    Name { name: "channel", meaning: "the channel it came from", scopes: &[Scope::Trigger] },
];

/// Where there is a run.
const OF_A_RUN: &[Scope] = &[Scope::Run, Scope::Remote, Scope::Answer, Scope::Action];

impl Scope {
    /// All places.
    pub const ALL: [Self; 5] = [Self::Run, Self::Remote, Self::Answer, Self::Action, Self::Trigger];

    /// What the place is called.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Run => "programs, conditions, `env` and `cwd`",
            Self::Remote => "`poll` and `cancel`",
            Self::Answer => "`success` and `failure` of a remote task",
            Self::Action => "actions",
            Self::Trigger => "args of triggers",
        }
    }

    /// Names that can be used here beside params.
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
    fn each_place_knows_its_names() {
        for (scope, names) in [
            (Scope::Run, "run_id job nominal_time attempt"),
            (Scope::Remote, "run_id job nominal_time attempt task"),
            (Scope::Answer, "run_id job nominal_time attempt task answer"),
            (Scope::Action, "run_id job nominal_time attempt number state reason"),
            (Scope::Trigger, "job message channel"),
        ] {
            assert_eq!(scope.names().collect::<Vec<_>>().join(" "), names, "{scope:?}");
            assert_eq!(scope.has_params(), scope.has("run_id"), "{scope:?}");
        }
    }
}
