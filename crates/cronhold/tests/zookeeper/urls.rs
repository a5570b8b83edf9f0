//! How the servers are named, and what commands print if they cannot be reached.

use crate::sandbox::{CommandOutput, Sandbox};

#[test]
fn environment_names_the_servers_if_the_url_does_not() {
    let mut sandbox = Sandbox::new("urls");
    let servers = format!("127.0.0.1:{}", sandbox.server.port());
    let list = |servers: Option<&str>, url: &str| {
        let args = ["--store", url, "list"];
        let mut command = sandbox.command(&args);
        command.envs(servers.map(|servers| ("ZOOKEEPER_SERVERS", servers)));
        CommandOutput::new(&args, &command.output().expect("the binary starts"))
    };
    let listed = list(Some(&servers), "zk:///castle-cron");
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let unnamed = list(None, "zk:///castle-cron");
    assert!(unnamed.code != Some(0) && unnamed.err.contains("ZOOKEEPER_SERVERS"), "{unnamed:?}");
    let invalid = list(Some("host:port"), "zk:///castle-cron");
    assert!(invalid.code != Some(0) && invalid.err.contains("ZOOKEEPER_SERVERS"), "{invalid:?}");
    sandbox.server.kill();
    let down = sandbox.at_store(&["list"]);
    assert!(down.code != Some(0) && down.err.contains("no server accepts a session"), "{down:?}");
}
