"""A mail server for tests: STARTTLS and a login are required. It prints its port, then each message as a line of JSON.

Usage: server.py CERTIFICATE KEY USER PASSWORD
"""

import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class PrintingHandler:
    async def handle_DATA(self, server, session, envelope):
        message = {
            "encrypted": session.ssl is not None,
            "login": session.auth_data,
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "content": envelope.content.decode(),
        }
        print(json.dumps(message), flush=True)
        return "250 accepted"


async def main(certificate, key, user, password):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    def authenticate(server, session, envelope, mechanism, data):
        is_valid = (data.login.decode(), data.password.decode()) == (user, password)
        return AuthResult(success=is_valid, auth_data=data.login.decode() if is_valid else None)

    def protocol():
        return SMTP(
            PrintingHandler(),
            hostname="localhost",
            tls_context=context,
            require_starttls=True,
            auth_required=True,
            authenticator=authenticate,
        )

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
