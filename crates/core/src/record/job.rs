//! A job as it is stored: its definition, its source and its unique id.

use std::fmt;
use std::sync::Arc;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{CompileError, Schedule, TextError};

use crate::ids::{JobId, JobUid};
use crate::job::Job;
use crate::world::DecisionContext;

/// A job with its definition, revision and source.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRecord {
    /// The name of the job.
    pub id: JobId,
    /// The unique id. A job that is removed and created again under the same name has a new one.
    pub uid: JobUid,
    /// 1 when the job is created, and one more with each change. Cursors name the revision they were computed from.
    pub revision: u32,
    /// The definition of the job.
    pub job: Arc<Job>,
    /// The zone of its schedules that name none: the default of the node that stored the job. Nodes with another
    /// default use this one.
    pub zone: Arc<str>,
    /// The source of the job, which decides who may change it.
    pub source: JobSource,
    /// Ids of its schedules, in the order of the definition.
    schedule_ids: Vec<ScheduleId>,
}

/// Where a job came from. A directory changes only its own jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobSource {
    /// A directory of job files, with the prefix it was loaded under.
    Directory(String),
    /// The command line or the API.
    Api,
    /// A foreign client that shares the store.
    Foreign,
}

/// The id of a schedule within its job: its name, or a digest of its timing and args. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleId(Arc<str>);

impl JobRecord {
    /// A job in its first revision.
    pub fn new(id: JobId, uid: JobUid, job: Arc<Job>, zone: Arc<str>, source: JobSource) -> Self {
        let schedule_ids = job.schedules.iter().map(|schedule| {
            let mut schedule = schedule.clone();
            // The id covers the zone even if the schedule names none.
            schedule.spec.zone.get_or_insert_with(|| zone.to_string());
            ScheduleId(schedule.id().into())
        });
        let schedule_ids = schedule_ids.collect();
        Self { id, uid, revision: 1, job, zone, source, schedule_ids }
    }

    /// Its schedules with their ids.
    pub fn schedules(&self) -> impl Iterator<Item = (&ScheduleId, &crate::job::JobSchedule)> {
        self.schedule_ids.iter().zip(&self.job.schedules)
    }

    /// The schedule with an id; `None` if the job has no such schedule.
    pub fn schedule(&self, id: &ScheduleId) -> Option<&crate::job::JobSchedule> {
        self.schedules().find(|(own, _)| *own == id).map(|(_, schedule)| schedule)
    }

    /// Compiles a schedule of the job, so that its occurrences can be computed.
    pub fn compile(
        &self,
        schedule: &crate::job::JobSchedule,
        world: &DecisionContext,
    ) -> Result<Schedule, CompileError> {
        world.compile(&self.id, &schedule.spec, &self.zone)
    }
}

impl ScheduleId {
    /// Longest id in bytes.
    pub const MAX: usize = 200;

    /// Parses an id of 1 to [`Self::MAX`] bytes.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text.is_empty() || text.len() > Self::MAX {
            return Err(TextError::new(0..text.len(), format!("`{}` cannot be a schedule's id", shortened(text))));
        }
        Ok(Self(text.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScheduleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ScheduleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

cronhold_schedule::stored_as_text!(ScheduleId);

impl JobSource {
    /// Precedes the prefix of a directory in the stored text.
    const DIRECTORY: &'static str = "directory:";

    /// Parses the text that `Display` writes.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        match text {
            "api" => Ok(Self::Api),
            "foreign" => Ok(Self::Foreign),
            _ => text
                .strip_prefix(Self::DIRECTORY)
                .map(|prefix| Self::Directory(prefix.to_owned()))
                .ok_or_else(|| TextError::new(0..text.len(), format!("`{}` is not a source", shortened(text)))),
        }
    }
}

impl JobSource {
    /// Whether `other` may change and remove a job from this source. The command line, the API and foreign clients may
    /// change each other's jobs; only the directory itself may change the jobs of a directory.
    pub fn is_open_to(&self, other: &Self) -> bool {
        let is_by_hand = |source: &Self| matches!(source, Self::Api | Self::Foreign);
        self == other || is_by_hand(self) && is_by_hand(other)
    }

    /// The source as the predicate of a sentence about the job.
    pub fn words(&self) -> String {
        match self {
            Self::Directory(prefix) if prefix.is_empty() => "comes from a job file".to_owned(),
            Self::Directory(prefix) => format!("comes from a job file of the directory with the prefix `{prefix}`"),
            Self::Api => "was created by the command line or the API".to_owned(),
            Self::Foreign => "was created by another program that shares the store".to_owned(),
        }
    }
}

impl fmt::Display for JobSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(prefix) => write!(f, "{}{prefix}", Self::DIRECTORY),
            Self::Api => f.write_str("api"),
            Self::Foreign => f.write_str("foreign"),
        }
    }
}

cronhold_schedule::stored_as_text!(JobSource);
