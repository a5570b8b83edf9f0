//! Definitions of another scheduler, read from its own store for `cronhold import`. Nothing is written there.

use std::sync::Arc;

use cronhold_cli::{Failure, NamedStore};
use cronhold_schedule::Zones;
use cronhold_wiring::{Around, StoreUrl};
use tokio::runtime::Builder;

use crate::clock;

/// Definitions by name, as they stand in the store.
pub(crate) fn definitions(named: &NamedStore<'_>, zones: &Arc<Zones>) -> Result<Vec<(String, String)>, Failure> {
    let url = StoreUrl::parse(named.url).map_err(|error| Failure::flag(named.origin, error))?;
    if !url.is_shared() {
        let message = format!("{}: {url} is not the store of another scheduler", named.origin);
        return Err(Failure::usage(message, "give its Redis, such as redis://10.0.0.5"));
    }
    let around = Around::new(Arc::new(clock::now), Arc::clone(zones));
    let executor = Builder::new_current_thread().enable_all().build();
    let executor = executor.map_err(|error| Failure::refused(error.to_string(), "look at the limit of open files"))?;
    let forms = executor.block_on(cronhold_wiring::read_shared(&url, around));
    let hint = Some(format!("look whether it is there: {url}"));
    let forms = forms.map_err(|error| Failure::Unreachable { message: error.to_string(), hint })?;
    Ok(forms.into_iter().filter_map(|form| Some((form.name, form.text?))).collect())
}
