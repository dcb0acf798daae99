"""A stranger for Fulmar to talk to: an HTTP/0.9 server and client over aioquic.

It speaks ALPN hq-interop: the client opens a bidirectional stream, sends "GET /path\\r\\n" and ends the stream, the server answers
with the bytes of the file and ends the stream. In the case http3 it speaks HTTP/3. The command line is that of the other peers.
"""

import argparse
import asyncio
import os
import ssl
import sys
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived, StreamReset
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite, SessionTicket

ALPN = "hq-interop"
REQUEST_MAX = 8 << 10


def open_key_log():
    name = os.environ.get("SSLKEYLOGFILE")
    return open(name, "a") if name else None


def configuration(is_client, arguments):
    versions = [QuicProtocolVersion.VERSION_1]
    if arguments.v2:
        # The first is what a server prefers; a client says with which it begins.
        versions.insert(0, QuicProtocolVersion.VERSION_2)
    result = QuicConfiguration(
        is_client=is_client,
        alpn_protocols=H3_ALPN if arguments.testcase == "http3" else [ALPN],
        secrets_log_file=open_key_log(),
        supported_versions=versions,
        max_data=8 << 20,
        max_stream_data=8 << 20,
    )
    if is_client:
        result.original_version = QuicProtocolVersion.VERSION_1
    return result


class ServerProtocol(QuicConnectionProtocol):
    """Answers each stream with a file."""

    root = "."

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._requests = {}

    def quic_event_received(self, event):
        if not isinstance(event, StreamDataReceived) or event.stream_id % 4 != 0:
            return
        request = self._requests.get(event.stream_id, b"") + event.data
        if len(request) > REQUEST_MAX:
            self._quic.reset_stream(event.stream_id, 0x400)
            return
        if b"\n" not in request and not event.end_stream:
            self._requests[event.stream_id] = request
            return
        self._requests.pop(event.stream_id, None)
        self._answer(event.stream_id, request)

    def _answer(self, stream_id, request):
        line = request.split(b"\n")[0].strip().decode("ascii", "replace")
        method, _, path = line.partition(" ")
        content = self.content(path) if method == "GET" else None
        if content is None:
            self._quic.reset_stream(stream_id, 0x404)
        else:
            self._quic.send_stream_data(stream_id, content, end_stream=True)
        self.transmit()

    def content(self, path):
        """What a file has, or None."""
        path = os.path.realpath(os.path.join(self.root, path.lstrip("/")))
        inside = path.startswith(os.path.join(os.path.realpath(self.root), ""))
        if not inside or not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            return file.read()


class Http3ServerProtocol(ServerProtocol):
    """Answers each request with a file."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._http = H3Connection(self._quic)

    def quic_event_received(self, event):
        for http_event in self._http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                self._respond(http_event.stream_id, dict(http_event.headers))

    def _respond(self, stream_id, fields):
        is_get = fields.get(b":method") == b"GET"
        content = self.content(fields.get(b":path", b"").decode("ascii", "replace")) if is_get else None
        status = b"404" if content is None else b"200"
        content = content or b""
        length = str(len(content)).encode()
        self._http.send_headers(stream_id, [(b":status", status), (b"content-length", length)])
        self._http.send_data(stream_id, content, end_stream=True)
        self.transmit()


class Tickets:
    """The sessions of a server, each good for one resumption."""

    def __init__(self):
        self._tickets = {}

    def add(self, ticket):
        self._tickets[ticket.ticket] = ticket

    def pop(self, label):
        return self._tickets.pop(label, None)


async def run_server(arguments):
    config = configuration(False, arguments)
    config.load_cert_chain(arguments.cert, arguments.key)
    ServerProtocol.root = arguments.www
    host, _, port = arguments.listen.rpartition(":")
    tickets = Tickets()
    await serve(
        host.strip("[]"),
        int(port),
        configuration=config,
        create_protocol=Http3ServerProtocol if arguments.testcase == "http3" else ServerProtocol,
        session_ticket_fetcher=tickets.pop,
        session_ticket_handler=tickets.add,
        retry=arguments.retry,
    )
    print("listening on", arguments.listen, flush=True)
    await asyncio.Event().wait()


class ClientProtocol(QuicConnectionProtocol):
    """Writes what arrives on streams to files."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._files = {}

    def get(self, path, out):
        """Asks for a file; the future is done when it is complete."""
        stream_id = self._quic.get_next_available_stream_id()
        done = self._loop.create_future()
        self._files[stream_id] = (open(os.path.join(out, os.path.basename(path)), "wb"), done)
        self._quic.send_stream_data(stream_id, f"GET {path}\r\n".encode(), end_stream=True)
        self.transmit()
        return done

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.stream_id in self._files:
            file, done = self._files[event.stream_id]
            file.write(event.data)
            if event.end_stream:
                file.close()
                del self._files[event.stream_id]
                done.set_result(None)
        elif isinstance(event, StreamReset) and event.stream_id in self._files:
            _, done = self._files.pop(event.stream_id)
            done.set_exception(RuntimeError(f"the stream was reset with code {event.error_code}"))

    def connection_lost(self, exc):
        self.fail(exc)
        super().connection_lost(exc)

    def fail(self, why):
        for _, done in self._files.values():
            if not done.done():
                done.set_exception(why or RuntimeError("the connection was lost"))


class Http3ClientProtocol(ClientProtocol):
    """Writes the bodies of responses to files."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._http = H3Connection(self._quic)
        self.authority = ""

    def get(self, path, out):
        stream_id = self._quic.get_next_available_stream_id()
        done = self._loop.create_future()
        self._files[stream_id] = (open(os.path.join(out, os.path.basename(path)), "wb"), done)
        request = {":method": "GET", ":scheme": "https", ":authority": self.authority, ":path": path}
        fields = [(name.encode(), value.encode()) for name, value in request.items()]
        self._http.send_headers(stream_id, fields, end_stream=True)
        self.transmit()
        return done

    def quic_event_received(self, event):
        if isinstance(event, StreamReset):
            super().quic_event_received(event)
        for http_event in self._http.handle_event(event):
            file, done = self._files.get(getattr(http_event, "stream_id", None), (None, None))
            if file is None:
                continue
            if isinstance(http_event, HeadersReceived) and dict(http_event.headers).get(b":status") != b"200":
                del self._files[http_event.stream_id]
                done.set_exception(RuntimeError(f"the response was {http_event.headers}"))
                continue
            if isinstance(http_event, DataReceived):
                file.write(http_event.data)
            if http_event.stream_ended:
                file.close()
                del self._files[http_event.stream_id]
                done.set_result(None)


async def fetch(arguments, config, urls, *, early=False, on_ticket=None, expect_ticket=False):
    """Fetches files over one connection."""
    parts = urlsplit(urls[0])
    config.server_name = parts.hostname
    got_ticket = asyncio.Event()

    def take_ticket(ticket):
        if on_ticket:
            on_ticket(ticket)
        got_ticket.set()

    async with connect(
        parts.hostname,
        parts.port or 443,
        configuration=config,
        create_protocol=Http3ClientProtocol if arguments.testcase == "http3" else ClientProtocol,
        session_ticket_handler=take_ticket,
        wait_connected=not early,
    ) as client:
        if arguments.testcase == "keyupdate":
            await client.ping()
            client.request_key_update()
        client.authority = parts.netloc
        files = [client.get(urlsplit(url).path, arguments.out) for url in urls]
        closed = asyncio.ensure_future(client.wait_closed())
        everything = asyncio.gather(*files)
        await asyncio.wait([everything, closed], return_when=asyncio.FIRST_COMPLETED)
        if not everything.done():
            everything.cancel()
            raise RuntimeError("the connection ended before the files were there")
        everything.result()
        if expect_ticket:
            await asyncio.wait_for(got_ticket.wait(), 5)


async def run_client(arguments):
    ticket: SessionTicket | None = None

    def keep(new):
        nonlocal ticket
        ticket = new

    def config():
        result = configuration(True, arguments)
        result.verify_mode = ssl.CERT_NONE
        if arguments.testcase == "chacha20":
            result.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
        result.session_ticket = ticket
        return result

    urls = arguments.urls
    if arguments.testcase == "multiconnect":
        for url in urls:
            await fetch(arguments, config(), [url])
    elif arguments.testcase in ("resumption", "zerortt"):
        await fetch(arguments, config(), urls[:1], on_ticket=keep, expect_ticket=True)
        await fetch(arguments, config(), urls[1:], early=arguments.testcase == "zerortt")
    else:
        await fetch(arguments, config(), urls)


def main():
    parser = argparse.ArgumentParser()
    roles = parser.add_subparsers(dest="role", required=True)
    server = roles.add_parser("server")
    server.add_argument("--listen", default="127.0.0.1:4433")
    server.add_argument("--www", default=".")
    server.add_argument("--cert", required=True)
    server.add_argument("--key", required=True)
    server.add_argument("--retry", action="store_true")
    client = roles.add_parser("client")
    client.add_argument("--out", required=True)
    client.add_argument("--insecure", action="store_true", help="any certificate is accepted, always")
    client.add_argument("urls", nargs="+")
    for role in (server, client):
        role.add_argument("--testcase", default="transfer")
        role.add_argument("--v2", action="store_true")
    arguments = parser.parse_args()
    try:
        asyncio.run(run_server(arguments) if arguments.role == "server" else run_client(arguments))
    except KeyboardInterrupt:
        pass
    except Exception as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
