//! Actions that use every field: of every kind, and in every status.

use cronhold_core::job::{ActionKind, RunEvent, SecretSource};
use cronhold_core::record::{
    ActionId, ActionRecord, ActionStatus, CommandLine, ResolvedAction, ResolvedProcess, ResolvedWebhook, RunOwner,
    TriggerId,
};
use cronhold_core::task::{Channel, JsonText};
use cronhold_core::{NodeId, State};

use super::rich_records::{TEXTS, last, times};
use super::samples::{args, job_id, run_id};

/// Actions of every kind and in every status, with all fields set.
pub(super) fn actions() -> Vec<ActionRecord> {
    let texts = |count: usize| TEXTS[..count].iter().map(|text| ((*text).to_owned(), (*text).to_owned())).collect();
    let webhook = |secret| {
        ResolvedAction::Webhook(Box::new(ResolvedWebhook {
            url: TEXTS[1].to_owned(),
            method: "POST".to_owned(),
            headers: texts(3),
            body: TEXTS.concat(),
            secret,
        }))
    };
    let shell = CommandLine::Shell { text: TEXTS[1].to_owned(), shell: None };
    let works = [
        ResolvedAction::Run {
            job: job_id("größe/日本 🦀"),
            args: texts(2),
            inherited: args(&[("x", TEXTS[2])]),
            trigger: TriggerId::parse(TEXTS[2]).ok(),
        },
        webhook(None),
        webhook(Some(SecretSource::File("/run/key".to_owned()))),
        webhook(Some(SecretSource::Env("KEY".to_owned()))),
        ResolvedAction::Email {
            to: vec!["a@b".to_owned(), "c@d".to_owned()],
            subject: TEXTS[1].to_owned(),
            body: TEXTS.concat(),
        },
        ResolvedAction::Command(Box::new(ResolvedProcess::plain(shell))),
        ResolvedAction::Publish {
            channel: Channel::parse("/größe/日本").expect("a channel"),
            message: JsonText::parse(r#"{"b":[1,null,"größe 🦀"],"a":12345678901234567890}"#).expect("JSON"),
        },
        ResolvedAction::Invalid(ActionKind::Publish),
    ];
    let owner = RunOwner { node: NodeId::from_bits(u128::MAX), incarnation: u32::MAX };
    let statuses = [
        ActionStatus::Pending { due: times()[2], owner: Some(owner) },
        ActionStatus::Pending { due: last(), owner: None },
        ActionStatus::Done { at: times()[0] },
        ActionStatus::Failed { at: times()[4] },
    ];
    let action = |(index, work): (usize, ResolvedAction)| ActionRecord {
        id: ActionId::new(run_id(8, 8), u32::try_from(index).unwrap_or(0)),
        job: job_id("größe/日本 🦀"),
        event: match index {
            0 => RunEvent::Finished,
            1 => RunEvent::Late,
            2 => RunEvent::Missed,
            _ => RunEvent::State(State::ALL[index]),
        },
        created: times()[index % 5],
        work,
        attempts: u32::MAX,
        failures: u32::MAX - 1,
        error: Some(TEXTS[index % TEXTS.len()].to_owned()).filter(|_| index > 0),
        status: statuses[index % statuses.len()],
    };
    works.into_iter().enumerate().map(action).collect()
}
