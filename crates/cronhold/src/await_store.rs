//! A daemon that starts before its store waits for it. It does not listen in the meantime, so that commands report at
//! once that there is no daemon yet.

use cronhold_cli::CliError;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use cronhold_store::{Fault, Store};
use tracing::warn;

use crate::clock::SystemClock;
use crate::daemon::cannot_start;

/// The first wait between two attempts.
const WAIT_MIN: Span = Span::from_millis(100);
/// The longest wait between two attempts.
const WAIT_MAX: Span = Span::from_secs(2);

/// The error for a store that cannot be used, and for which waiting does not help.
pub(crate) fn unusable(fault: &Fault) -> CliError {
    let why = match fault {
        Fault::Permanent(why) => format!("cannot use the store: {why}"),
        other => other.to_string(),
    };
    CliError::refused(why, "check the store and its URL: `--store` or CRONHOLD_STORE")
}

/// Waits until a shared store is available, and logs each reason once. Fails if the store cannot become available. Must
/// be called inside the executor.
pub(crate) async fn await_store(store: &dyn Store) -> Result<(), CliError> {
    if !store.is_shared() {
        return Ok(());
    }
    let clock = SystemClock::new().map_err(|error| cannot_start(&error))?;
    let (mut wait, mut logged) = (WAIT_MIN, None);
    loop {
        let fault = match store.time().await {
            Err(fault) if fault.is_transient() => fault.to_string(),
            Err(fault) => return Err(unusable(&fault)),
            Ok(_) => break,
        };
        if logged.as_ref() != Some(&fault) {
            warn!(event = "store_unavailable", "{fault}; waiting for it");
            logged = Some(fault);
        }
        clock.sleep(wait).await;
        wait = wait.plus(wait).min(WAIT_MAX);
    }
    if logged.is_some() {
        warn!(event = "store_available", "the store is available");
    }
    Ok(())
}
