//! A plain ZooKeeper client in Python, which knows only castle-cron's document.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The client. It ends with this process.
pub(crate) struct KazooClient {
    child: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl KazooClient {
    /// Connects to the server at a port.
    pub(crate) fn start(port: u16) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../kazoo/bin/python");
        assert!(python.exists(), "{} does not exist; `./dev test` installs it", python.display());
        let mut command = Command::new(python);
        command.arg(root.join("tests/kazoo/client.py")).args(["--port", &port.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let requests = child.stdin.take();
        let replies = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, requests, replies }
    }

    /// Calls a function of the client with named arguments. Panics if it fails.
    #[track_caller]
    pub(crate) fn call(&mut self, function: &str, arguments: Value) -> Value {
        let mut request = arguments;
        request["ask"] = json!(function);
        writeln!(self.requests.as_mut().expect("open until it ends"), "{request}").expect("it reads");
        let mut line = String::new();
        self.replies.read_line(&mut line).expect("it replies");
        let reply: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{request}: {error}: {line}"));
        assert!(reply.get("error").is_none(), "{request}: {reply}");
        reply["ok"].clone()
    }

    /// The data of a znode below castle-cron's root; `None` if it does not exist.
    #[track_caller]
    pub(crate) fn data(&mut self, name: &str) -> Option<String> {
        let found = self.call("get", json!({"path": format!("/castle-cron/{name}")}));
        found["data"].as_str().map(str::to_owned)
    }

    /// The Job struct in a znode; null if the data is empty or the znode does not exist.
    #[track_caller]
    pub(crate) fn job(&mut self, name: &str) -> Value {
        let data = self.data(name).filter(|data| !data.is_empty());
        data.map_or(Value::Null, |data| serde_json::from_str(&data).expect("a Job struct as JSON"))
    }

    /// The name of the job in `/nextjob`; empty if there is none.
    #[track_caller]
    pub(crate) fn next_job(&mut self) -> String {
        self.job("nextjob")["Name"].as_str().unwrap_or_default().to_owned()
    }

    /// Creates a job as an operator does by hand.
    #[track_caller]
    pub(crate) fn create_job(&mut self, name: &str, schedule: &str, words: &[&str]) {
        let job = json!({
            "Name": name, "Cmd": words[0], "Args": words[1..], "HasError": false,
            "NextRuntime": "0001-01-01T00:00:00Z", "Schedule": schedule,
        });
        self.call("create", json!({"path": format!("/castle-cron/jobs/{name}"), "data": job.to_string()}));
    }

    /// Changes one field of a job by hand. Repeats it if the znode changes at the same time.
    #[track_caller]
    pub(crate) fn set_field(&mut self, name: &str, key: &str, value: &Value) {
        let path = format!("/castle-cron/jobs/{name}");
        self.call("set_field", json!({"path": path, "key": key, "value": value}));
    }

    #[track_caller]
    pub(crate) fn children(&mut self, name: &str) -> Vec<String> {
        let found = self.call("children", json!({"path": format!("/castle-cron/{name}")}));
        found.as_array().expect("names").iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

impl Drop for KazooClient {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.child.wait();
    }
}
