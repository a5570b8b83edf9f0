//! The name of the node, and its registration where other programs see a list of running nodes. Names are patterns as in
//! castle-cron: `%h` is the host and `%p` the process.

use cronhold_cli::CliError;
use cronhold_core::NodeId;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use cronhold_store::{NodeRegistration, Store};

use crate::clock::SystemClock;
use crate::daemon::store_failure;

/// How long a node that has stopped may take to leave the list.
const UNREGISTER_WAIT: Span = Span::from_secs(2);

/// The name that a pattern stands for; `%%` is a percent sign. `None` stands for the host.
pub(crate) fn expand(pattern: Option<&str>) -> String {
    let Some(pattern) = pattern else { return host_name() };
    let mut name = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(sign) = rest.next() {
        match (sign, rest.clone().next()) {
            ('%', Some('h')) => name.push_str(&host_name()),
            ('%', Some('p')) => name.push_str(&std::process::id().to_string()),
            ('%', Some('%')) => name.push('%'),
            (sign, _) => {
                name.push(sign);
                continue;
            }
        }
        rest.next();
    }
    name
}

/// Shows the node to other programs that share the store.
pub(crate) async fn register(store: &dyn Store, name: &str, node: NodeId, is_forced: bool) -> Result<(), CliError> {
    let Some(shared) = store.shared() else { return Ok(()) };
    match shared.register_node(name, node, is_forced).await.map_err(|fault| store_failure(&fault))? {
        NodeRegistration::Registered => Ok(()),
        NodeRegistration::NameTaken { holder } => Err(CliError::refused(
            format!("another server named `{name}` is running ({holder})"),
            "give this node another name with `--name`, such as `--name %h-%p`, or take over the name with `--force`",
        )),
    }
}

/// Removes the node from the list before the process ends. If this fails, the list drops it a little later.
pub(crate) async fn unregister(store: &dyn Store) {
    let (Some(shared), Ok(clock)) = (store.shared(), SystemClock::new()) else { return };
    tokio::select! {
        _ = shared.unregister_node() => {}
        () = clock.sleep(UNREGISTER_WAIT) => {}
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_host_and_process() {
        let (host, process) = (host_name(), std::process::id());
        assert_eq!(expand(None), host);
        assert_eq!(expand(Some("a-%h-%p")), format!("a-{host}-{process}"));
        assert_eq!(expand(Some("100%%h %x %")), "100%h %x %");
    }
}
