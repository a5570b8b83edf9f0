//! Requests from foreign pages (cross-site requests) and with foreign host names (DNS rebinding).

use super::sandbox::Sandbox;

#[test]
fn foreign_origins_and_hosts_are_refused() {
    let sandbox = Sandbox::new("origins");
    let daemon = sandbox.up();
    let address = &daemon.address;
    let port = address.rsplit_once(':').expect("a port").1;
    for headers in [
        "Origin: http://evil.example".to_owned(),
        "Origin: null".to_owned(),
        "Origin: ".to_owned(),
        format!("Origin: http://{address}.evil.example"),
        format!("Origin: http://evil.example:{port}"),
        format!("Origin: http://localhost:{port}"),
        format!("Origin: ftp://{address}"),
        format!("Origin: http://{address}/"),
        format!("Origin: http://{address}\nOrigin: http://evil.example"),
        "Host: evil.example".to_owned(),
        format!("Host: evil.example:{port}"),
        format!("Host: evil.example:{port}\nOrigin: http://evil.example:{port}"),
        format!("Host: 127.0.0.1.evil.example:{port}"),
        format!("Host: evil@127.0.0.1:{port}"),
        format!("Host: 10.0.0.1:{port}"),
        "Host: 127.0.0.1:1".to_owned(),
        "Host: 127.0.0.1".to_owned(),
        "Host: ".to_owned(),
    ] {
        for line in ["GET /api/v1/jobs", "POST /api/v1/pause", "GET /health", "GET /"] {
            let refused = daemon.request(&format!("{line}\n{headers}"));
            assert_eq!(refused.status, 403, "{line} {headers}: {}", refused.text());
            refused.assert_problem(403, "forbidden");
        }
    }
    // The host of an absolute URL in the request line is checked too.
    daemon.request(&format!("GET http://evil.example:{port}/api/v1/jobs")).assert_problem(403, "forbidden");
    assert_eq!(daemon.request(&format!("GET http://{address}/api/v1/jobs")).status, 200);
    daemon.request(&format!("GET /api/v1/jobs\nHost: {address}\nHost: {address}")).assert_problem(400, "bad_request");
    for headers in [
        format!("Origin: http://{address}"),
        format!("Host: localhost:{port}"),
        format!("Host: LOCALHOST:{port}\nOrigin: http://localhost:{port}"),
        format!("Host: [::1]:{port}"),
    ] {
        assert_eq!(daemon.request(&format!("GET /api/v1/jobs\n{headers}")).status, 200, "{headers}");
    }
    // A preflight request gets no permission.
    let preflight =
        daemon.open("OPTIONS /api/v1/pause\nOrigin: http://evil.example\nAccess-Control-Request-Method: POST");
    preflight.assert_problem(403, "forbidden");
    assert_eq!(preflight.header("access-control-allow-origin"), None);
    assert_eq!(daemon.get("/api/v1/jobs")["pause"], serde_json::Value::Null, "nothing was paused");
}
