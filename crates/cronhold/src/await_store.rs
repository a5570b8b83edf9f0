//! A daemon that is started before its store waits for it. Nothing is read or listened on meanwhile, so that whoever asks
//! is told at once that there is no daemon yet.

use cronhold_cli::Failure;
use cronhold_engine::Clock;
use cronhold_schedule::Span;
use cronhold_store::{Fault, Store};
use tracing::warn;

use crate::clock::SystemClock;
use crate::daemon::no_executor;

/// How soon a store that is away is asked again, at first.
const WAIT_MIN: Span = Span::from_millis(100);
/// How soon it is asked again in the long run.
const WAIT_MAX: Span = Span::from_secs(2);

/// A store that does not let us work on it, now or later.
pub(crate) fn unusable(fault: &Fault) -> Failure {
    let why = match fault {
        Fault::Broken(why) => format!("the store cannot be used: {why}"),
        other => other.to_string(),
    };
    Failure::refused(why, "look at the store and at its URL: `--store` or CRONHOLD_STORE")
}

/// Waits until a store that others share answers; it is told once why it does not. One that is broken is not waited for.
/// Must be called inside the executor.
pub(crate) async fn await_store(store: &dyn Store) -> Result<(), Failure> {
    if !store.is_shared() {
        return Ok(());
    }
    let clock = SystemClock::new().map_err(|error| no_executor(&error))?;
    let (mut wait, mut told) = (WAIT_MIN, None);
    loop {
        let fault = match store.time().await {
            Err(fault) if fault.is_passing() => fault.to_string(),
            Err(fault) => return Err(unusable(&fault)),
            Ok(_) => break,
        };
        if told.as_ref() != Some(&fault) {
            warn!(event = "store_unavailable", "{fault}; waiting for it");
            told = Some(fault);
        }
        clock.sleep(wait).await;
        wait = wait.plus(wait).min(WAIT_MAX);
    }
    if told.is_some() {
        warn!(event = "store_available", "the store is available");
    }
    Ok(())
}
