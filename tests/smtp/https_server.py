"""A receiver of webhooks over HTTPS for tests. It prints its port, then each request as a line of JSON.

Usage: https_server.py CERTIFICATE KEY
"""

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class PrintingHandler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print(json.dumps({"path": self.path, "key": self.headers["Idempotency-Key"], "body": body.decode()}), flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(*sys.argv[1:])
server = HTTPServer(("127.0.0.1", 0), PrintingHandler)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
