//! The HTTP API: request and response types, shared by server and command line, and the HTTP client.

pub mod client;
mod entry;
mod event;
mod job;
mod node;
mod operation;
mod peer;
mod pool;
mod problem;
mod report;
mod role;
mod run;
mod task;
mod task_store;
mod trigger;

pub use entry::{AdminToken, DaemonLocation, PageLink, PageSession, SOCKET, SignInBody};
pub use event::{FeedReset, JobChange, NodeChange, PauseChange, StoreChange};
pub use job::{
    ComingList, ComingRun, FileMistake, JobDetail, JobList, JobSummary, PauseSummary, ScheduleSummary, UpcomingRun,
};
pub use node::{DrainReply, HealthProblem, HealthProblemCode, HealthReport, NodeSummary, StoreLimitsReport};
pub use operation::{
    AdHocRunBody, ControlEvent, CreatedRun, JobUse, MarkBody, PauseBody, RenameBody, RenamedJob, RerunBody, RunBody,
    SignalBody, SkipBody,
};
pub use peer::{PeerRun, PeerState};
pub use pool::PoolSummary;
pub use problem::{Problem, ProblemCode};
pub use report::{AnswerLine, BackfillItem, BackfillPlan, HolesReport, ReloadReport, UnreadableItem, WhyReport};
pub use role::CallerRole;
pub use run::{
    ActionSummary, ChainDependency, ChainLink, OutputRange, ProgressSummary, ResponseHeader, RunChain, RunDetail,
    RunList, RunStep, RunSummary, RunTimes, ServiceResponse, StderrRanges,
};
pub use task::{
    AdoptBody, AliasesBody, ChannelList, ClassesBody, ConnectBody, ConnectReply, CreatedTask, DisownBody,
    PortChangeBody, PortItemList, PortItemValue, PortReadBody, PortReadReply, PublishBody, PublishedMessage,
    QueueReport, SubscribedChannel, TaskBody, TaskChild, TaskChildList, TaskDetail, TaskList, TaskPortOptions,
    TaskPortPlace, TaskPortSummary, TaskPortsBody, TaskReference, TaskRunBody, TaskStateBody, TaskSummary, TaskTree,
    TaskTreeNode, TerminateBody, WorkerReport,
};
pub use task_store::{
    ARRIVALS_WAIT_SECS, ArrivalsBody, ChannelPageBody, CommitTasksBody, CommitTasksReply, EndBareJobsBody,
    EndBareJobsReply, FindTaskBody, HoldBareJobsBody, ListenBody, NoArguments, PortItemsBody, RegisterWorkerBody,
    SignalWorkerBody, TASK_STORE, TASK_STORE_BODY_MAX, TaskChildBody, TaskChildrenBody, TaskPageBody, TaskQueueBody,
    TaskStoreCall, TaskStoreFault, TaskStoreFaultKind, TaskStoreReply, TaskUnitProblem, TaskWindowBody,
    WorkerProcessBody,
};
pub use trigger::{
    PendingTriggerSummary, RemovedTriggers, RunTriggerSummary, TriggerBody, TriggerCountSummary,
    TriggerDecisionSummary, TriggerList, TriggerReceipt,
};

/// Path prefix of the API.
pub const BASE: &str = "/api/v1";
/// Default port of the daemon.
pub const PORT: u16 = 2766;
/// Default number of items in a page.
pub const LIMIT: usize = 50;
/// Maximum number of items in a page.
pub const LIMIT_MAX: usize = 1_000;
