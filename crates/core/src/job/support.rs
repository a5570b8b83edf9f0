//! Which features of a job this version carries out. A job can describe more than that: the types, the reader and the
//! checks of those features exist already, but nothing executes them. [`Feature::is_supported`] is the one place that
//! decides. The reader of job files rejects a key whose feature is not supported, the reference marks it, and a job
//! that is already stored is reported with [`Job::unsupported`].

use std::collections::BTreeSet;

use super::{Action, Condition, Job, Probe, Program, Requirement};

/// Why a job that needs tasks is refused.
pub const STORE_WITHOUT_TASKS: &str = "this store does not keep tasks";
/// What the author of such a job can do.
pub const TASKS_HINT: &str = "stores on SQLite and on Redis keep tasks";

/// A kind of program, condition or action, or another part of a job that needs its own implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// `program: {http: …}`.
    HttpProgram,
    /// `program: {remote: …}`.
    RemoteProgram,
    /// `program: {task: …}`.
    TaskProgram,
    /// `program: {plugin: …}`.
    PluginProgram,
    /// The condition `file`.
    FileCondition,
    /// The condition `http`.
    HttpCondition,
    /// The condition `command`.
    CommandCondition,
    /// The condition `plugin`.
    PluginCondition,
    /// `pool` of the condition `max_running`.
    Pool,
    /// The action `run`.
    RunAction,
    /// The action `webhook`.
    WebhookAction,
    /// The action `email`.
    EmailAction,
    /// The action `command`.
    CommandAction,
    /// The action `publish`.
    PublishAction,
    /// The key `triggers`.
    Triggers,
}

impl Feature {
    /// All features, in the order of the keys in a job file.
    pub const ALL: [Self; 15] = [
        Self::HttpProgram,
        Self::RemoteProgram,
        Self::TaskProgram,
        Self::PluginProgram,
        Self::FileCondition,
        Self::HttpCondition,
        Self::CommandCondition,
        Self::PluginCondition,
        Self::Pool,
        Self::RunAction,
        Self::WebhookAction,
        Self::EmailAction,
        Self::CommandAction,
        Self::PublishAction,
        Self::Triggers,
    ];

    /// Whether this version carries the feature out. To enable a feature, return `true` for it here.
    pub const fn is_supported(self) -> bool {
        match self {
            Self::HttpProgram | Self::RemoteProgram | Self::TaskProgram | Self::PluginProgram => true,
            Self::FileCondition | Self::HttpCondition | Self::CommandCondition => true,
            Self::PluginCondition | Self::Pool => true,
            Self::RunAction | Self::WebhookAction | Self::EmailAction | Self::CommandAction => true,
            Self::PublishAction | Self::Triggers => true,
        }
    }

    /// Whether the feature needs a store that keeps tasks.
    pub const fn needs_tasks(self) -> bool {
        matches!(self, Self::TaskProgram | Self::PublishAction | Self::Triggers)
    }

    /// The name of the feature, in the plural, with its key in backticks.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::HttpProgram => "`http` programs",
            Self::RemoteProgram => "`remote` programs",
            Self::TaskProgram => "`task` programs",
            Self::PluginProgram => "`plugin` programs",
            Self::FileCondition => "`file` conditions",
            Self::HttpCondition => "`http` conditions",
            Self::CommandCondition => "`command` conditions",
            Self::PluginCondition => "`plugin` conditions",
            Self::Pool => "pools (`pool`)",
            Self::RunAction => "`run` actions",
            Self::WebhookAction => "`webhook` actions",
            Self::EmailAction => "`email` actions",
            Self::CommandAction => "`command` actions",
            Self::PublishAction => "`publish` actions",
            Self::Triggers => "`triggers`",
        }
    }

    /// The message for a job that uses the feature although this version does not carry it out.
    pub fn message(self) -> String {
        format!("{} are not supported by this version", self.noun())
    }

    /// What the author of the job can do instead.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::HttpProgram => "send the request from a command, such as `program: curl --fail https://…`",
            Self::RemoteProgram => "start and poll the task from a command",
            Self::TaskProgram => "queue the task from a command",
            Self::PluginProgram => "run the executable as a list: `program: [executable, argument]`",
            Self::FileCondition | Self::HttpCondition | Self::CommandCondition | Self::PluginCondition => {
                "check it at the start of the program, and let `retry` try again"
            }
            Self::Pool => "leave out `pool` to limit the runs of this job alone, or share a named `lock`",
            Self::RunAction => "give the other job a schedule and the condition `after` with this job",
            Self::PublishAction => "send a `webhook`, or follow runs with `cronhold watch`",
            Self::WebhookAction | Self::EmailAction | Self::CommandAction => {
                "do it at the end of the program, or follow runs with `cronhold watch`"
            }
            Self::Triggers => "remove the key, and start runs with `cronhold run` or through the API",
        }
    }

    /// The feature that a program needs; `None` for `shell`, `exec` and `noop`, which every version has.
    pub const fn of_program(program: &Program) -> Option<Self> {
        match program {
            Program::Shell(_) | Program::Exec(_) | Program::Noop { .. } => None,
            Program::Http(_) => Some(Self::HttpProgram),
            Program::Remote(_) => Some(Self::RemoteProgram),
            Program::Task(_) => Some(Self::TaskProgram),
            Program::Plugin(_) => Some(Self::PluginProgram),
        }
    }

    /// The feature that a requirement needs, without those of requirements inside it.
    pub const fn of_requirement(requirement: &Requirement) -> Option<Self> {
        match requirement {
            Requirement::Probe(probe) => Some(Self::of_probe(probe)),
            Requirement::MaxRunning { pool: Some(_), .. } => Some(Self::Pool),
            Requirement::MaxRunning { pool: None, .. }
            | Requirement::After { .. }
            | Requirement::SkipDuplicate { .. }
            | Requirement::Window { .. }
            | Requirement::All(_)
            | Requirement::Any(_)
            | Requirement::Not(_) => None,
        }
    }

    /// The feature that a probe needs.
    pub const fn of_probe(probe: &Probe) -> Self {
        match probe {
            Probe::File(_) => Self::FileCondition,
            Probe::Http(_) => Self::HttpCondition,
            Probe::Command(_) => Self::CommandCondition,
            Probe::Plugin(_) => Self::PluginCondition,
        }
    }

    /// The feature that an action needs.
    pub const fn of_action(action: &Action) -> Self {
        match action {
            Action::Run { .. } => Self::RunAction,
            Action::Webhook(_) => Self::WebhookAction,
            Action::Email { .. } => Self::EmailAction,
            Action::Command(_) => Self::CommandAction,
            Action::Publish { .. } => Self::PublishAction,
        }
    }
}

impl Job {
    /// The features that the job uses and this version does not carry out. Empty for every job that a reader accepts; a
    /// job that another version has stored can have some.
    pub fn unsupported(&self) -> BTreeSet<Feature> {
        let mut features = self.features();
        features.retain(|feature| !feature.is_supported());
        features
    }

    /// The features that the job uses.
    pub fn features(&self) -> BTreeSet<Feature> {
        let mut features: BTreeSet<Feature> = Feature::of_program(&self.program).into_iter().collect();
        Condition::visit(&self.conditions, &mut |requirement| features.extend(Feature::of_requirement(requirement)));
        features.extend(self.on.values().flatten().map(|rule| Feature::of_action(&rule.action)));
        features.extend((!self.triggers.is_empty()).then_some(Feature::Triggers));
        features
    }
}

/// A job for each feature, which uses that feature and no other.
#[cfg(test)]
pub(crate) fn job_with(feature: Feature) -> Job {
    use std::collections::BTreeMap;

    use super::{
        ActionRule, Batching, HttpProgram, HttpTarget, PluginCall, RemoteProgram, RunEvent, TaskProgram, Trigger,
    };
    use crate::record::PoolName;
    use crate::template::{Expression, Template};

    let template = |text| Template::parse(text).expect("a template");
    let expression = |text| Expression::parse(text).expect("an expression");
    let request = || HttpProgram::new(template("https://example.org"));
    let plugin = || Box::new(PluginCall { command: "k8s".to_owned(), settings: BTreeMap::new() });
    let mut job = Job::new(Program::Shell(template("true")));
    let require = |job: &mut Job, requires| {
        job.conditions = vec![Condition::new(requires)];
    };
    let act = |job: &mut Job, action| job.on = BTreeMap::from([(RunEvent::Finished, vec![ActionRule::always(action)])]);
    match feature {
        Feature::HttpProgram => job.program = Program::Http(Box::new(request())),
        Feature::RemoteProgram => {
            job.program = Program::Remote(Box::new(RemoteProgram {
                start: request(),
                poll: request(),
                every: RemoteProgram::EVERY_DEFAULT,
                success: expression("answer.done"),
                failure: expression("answer.failed"),
                cancel: None,
            }));
        }
        Feature::TaskProgram => {
            let (queue, class) = ("default".to_owned(), "Summer".to_owned());
            let (args, inports, alias) = (Vec::new(), BTreeMap::new(), None);
            job.program =
                Program::Task(Box::new(TaskProgram::Queue { queue, class, args, inports, alias, wait: false }));
        }
        Feature::PluginProgram => job.program = Program::Plugin(plugin()),
        Feature::FileCondition => require(&mut job, Requirement::Probe(Probe::File(template("/ready")))),
        Feature::HttpCondition => require(&mut job, Requirement::Probe(Probe::Http(Box::new(request())))),
        Feature::CommandCondition => require(&mut job, Requirement::Probe(Probe::Command(template("true")))),
        Feature::PluginCondition => require(&mut job, Requirement::Probe(Probe::Plugin(plugin()))),
        Feature::Pool => {
            let pool = PoolName::parse("database").ok();
            require(&mut job, Requirement::MaxRunning { count: 1, same_args: false, pool });
        }
        Feature::RunAction => act(&mut job, Action::Run { job: template("other"), args: BTreeMap::new() }),
        Feature::WebhookAction => act(&mut job, Action::Webhook(HttpTarget::new(template("https://example.org")))),
        Feature::EmailAction => {
            act(&mut job, Action::Email { to: vec!["ops@example.org".to_owned()], subject: None, body: None });
        }
        Feature::CommandAction => act(&mut job, Action::Command(template("true"))),
        Feature::PublishAction => act(&mut job, Action::Publish { channel: template("/x"), message: None }),
        Feature::Triggers => {
            let (channel, batching) = ("/x".to_owned(), Batching::default());
            job.triggers = vec![Trigger { channel, args: BTreeMap::new(), batching }];
        }
    }
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_found_in_a_job_that_uses_it() {
        for feature in Feature::ALL {
            let expected: BTreeSet<Feature> = [feature].into_iter().filter(|feature| !feature.is_supported()).collect();
            assert_eq!(job_with(feature).unsupported(), expected, "{feature:?}");
        }
    }

    #[test]
    fn features_of_nested_conditions_are_found() {
        let condition = Condition::new;
        let mut job = job_with(Feature::HttpCondition);
        let inner = condition(Requirement::Not(Box::new(condition(Requirement::All(job.conditions)))));
        job.conditions = vec![condition(Requirement::Any(vec![inner]))];
        let mut found = Vec::new();
        Condition::visit(&job.conditions, &mut |requirement| found.extend(Feature::of_requirement(requirement)));
        assert_eq!(found, [Feature::HttpCondition]);
    }

    /// A feature that is described and not carried out yet is listed here.
    #[test]
    fn every_feature_is_supported() {
        let unsupported: Vec<&str> = Feature::ALL.iter().filter(|it| !it.is_supported()).map(|it| it.noun()).collect();
        assert!(unsupported.is_empty(), "{unsupported:?}");
    }
}
