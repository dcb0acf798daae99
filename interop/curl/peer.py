"""A stranger for Fulmar to talk to: curl with HTTP/3, as the wheel of pycurl carries it.

Asks a server for the files of a directory, in the way that the case names, by HTTP/3 alone, and compares what comes with what is
there. It ends with status 1 and a sentence on standard error at the first thing that is wrong.
"""

import argparse
import hashlib
import sys
from email.utils import formatdate
from pathlib import Path

import pycurl

# The largest of the files, which takes many packets.
LARGE = "5m"
FILES = ["empty", "one", "1k", LARGE]
PARALLEL = 100
UPLOAD_BYTES = 5_000_000
TIMEOUT_S = 60
HTTP3 = 30


class Wrong(Exception):
    """What came is not what should have come."""


def expect(what, found, wanted):
    if found != wanted:
        raise Wrong(f"{what}: {found!r} instead of {wanted!r}")


class Response:
    """A request under way, and what came of it."""

    def __init__(self, url, authority, fields=(), configure=None, handle=None):
        self.fields, self.body = {}, bytearray()
        self.handle = handle or pycurl.Curl()
        self.handle.reset()
        for option, value in [
            (pycurl.URL, url),
            (pycurl.CAINFO, authority),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_3ONLY),
            (pycurl.TIMEOUT, TIMEOUT_S),
            # Whatever the environment says: the server is on this machine.
            (pycurl.PROXY, ""),
            (pycurl.HTTPHEADER, list(fields)),
            (pycurl.WRITEFUNCTION, self._write),
            (pycurl.HEADERFUNCTION, self._field),
        ]:
            self.handle.setopt(option, value)
        if configure:
            configure(self.handle)

    def _write(self, data):
        self.body += data

    def _field(self, line):
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            self.fields[name.strip().lower()] = value.strip()

    @property
    def status(self):
        return self.handle.getinfo(pycurl.RESPONSE_CODE)

    def perform(self):
        self.handle.perform()
        self.check_version()
        return self

    def check_version(self):
        expect("the version of HTTP", self.handle.getinfo(pycurl.INFO_HTTP_VERSION), HTTP3)


class Client:
    def __init__(self, arguments):
        self.url, self.www, self.authority = arguments.url, Path(arguments.www), arguments.ca
        self.echoes = arguments.echoes

    def ask(self, name, *fields, configure=None, handle=None):
        return Response(self.url + name, self.authority, fields, configure, handle).perform()

    def file(self, name):
        return (self.www / name).read_bytes()

    def compare(self, name, body, wanted=None):
        wanted = self.file(name) if wanted is None else wanted
        expect(f"the length of {name}", len(body), len(wanted))
        digests = [hashlib.sha256(bytes).hexdigest() for bytes in (body, wanted)]
        expect(f"the digest of {name}", *digests)


def files(client):
    for name in FILES:
        response = client.ask(name)
        expect(f"the status of {name}", response.status, 200)
        expect(f"the Content-Length of {name}", response.fields.get("content-length"), str(len(response.body)))
        client.compare(name, response.body)
    expect("the status of what is not there", client.ask("nothing").status, 404)


def head(client):
    for name in FILES:
        response = client.ask(name, configure=lambda handle: handle.setopt(pycurl.NOBODY, True))
        expect(f"the status of {name}", response.status, 200)
        expect(f"the body of {name}", bytes(response.body), b"")
        # A length of 0 may be left out (RFC 9110, section 8.6).
        expect(f"the Content-Length of {name}", response.fields.get("content-length", "0"), str(len(client.file(name))))


def ranges(client):
    whole = client.file(LARGE)
    size = len(whole)
    for text, first, end in [
        ("0-0", 0, 1),
        ("100-1999", 100, 2000),
        (f"{size - 1}-", size - 1, size),
        ("1000000-", 1_000_000, size),
        ("-500", size - 500, size),
        (f"0-{size + 10}", 0, size),
    ]:
        response = client.ask(LARGE, configure=lambda handle: handle.setopt(pycurl.RANGE, text))
        expect(f"the status of {text}", response.status, 206)
        expect(f"the place of {text}", response.fields.get("content-range"), f"bytes {first}-{end - 1}/{size}")
        client.compare(text, response.body, whole[first:end])
    response = client.ask(LARGE, f"Range: bytes={size}-")
    expect("the status of what begins behind the end", response.status, 416)
    expect("the place of that", response.fields.get("content-range"), f"bytes */{size}")


def conditions(client):
    first = client.ask("1k")
    tag, changed = first.fields["etag"], first.fields["last-modified"]
    past = formatdate(0, usegmt=True)
    for fields, status in [
        ([f"If-None-Match: {tag}"], 304),
        (["If-None-Match: \"another\""], 200),
        ([f"If-None-Match: \"another\", {tag}"], 304),
        ([f"If-Modified-Since: {changed}"], 304),
        ([f"If-Modified-Since: {past}"], 200),
        ([f"If-Match: {tag}"], 200),
        (["If-Match: \"another\""], 412),
        ([f"If-Unmodified-Since: {past}"], 412),
        ([f"If-Range: {tag}", "Range: bytes=0-9"], 206),
        (["If-Range: \"another\"", "Range: bytes=0-9"], 200),
    ]:
        response = client.ask("1k", *fields)
        expect(f"the status with {fields}", response.status, status)
        if status in (200, 206):
            client.compare("1k", response.body, client.file("1k")[: 10 if status == 206 else None])
        if status == 304:
            expect(f"the body with {fields}", bytes(response.body), b"")


def compressed(client):
    plain = client.ask("script.js")
    expect("the encoding that was not asked for", plain.fields.get("content-encoding"), None)
    client.compare("script.js", plain.body)
    # curl decodes what it has asked for.
    packed = client.ask("script.js", configure=lambda handle: handle.setopt(pycurl.ACCEPT_ENCODING, "gzip"))
    expect("the encoding", packed.fields.get("content-encoding"), "gzip")
    expect("the Content-Length", packed.fields.get("content-length"), str(len(client.file("script.js.gz"))))
    client.compare("script.js", packed.body)


def parallel(client):
    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
    # One that takes long among many that do not.
    names = ["1k"] * (PARALLEL - 1) + [LARGE]
    wait = lambda handle: handle.setopt(pycurl.PIPEWAIT, True)
    responses = [Response(client.url + name, client.authority, (), wait) for name in names]
    for response in responses:
        multi.add_handle(response.handle)
    running = len(responses)
    while running:
        _, running = multi.perform()
        multi.select(1.0)
    queued, _, failed = multi.info_read(len(responses))
    expect("what is still to be told", queued, 0)
    if failed:
        raise Wrong(f"{len(failed)} of {len(responses)} requests failed, one with: {failed[0][2]}")
    for name, response in zip(names, responses):
        response.check_version()
        expect("the status", response.status, 200)
        client.compare(name, response.body)
    connections = sum(response.handle.getinfo(pycurl.NUM_CONNECTS) for response in responses)
    expect("the number of connections", connections, 1)


def post(client):
    content = bytes(range(256)) * (UPLOAD_BYTES // 256)

    def upload(handle):
        handle.setopt(pycurl.POST, True)
        handle.setopt(pycurl.POSTFIELDSIZE, len(content))
        left = memoryview(content)

        def read(size):
            nonlocal left
            piece, left = left[:size], left[size:]
            return bytes(piece)

        handle.setopt(pycurl.READFUNCTION, read)

    if client.echoes:
        response = client.ask("echo", "Content-Type: application/octet-stream", configure=upload)
        expect("the status", response.status, 200)
        client.compare("what was sent", response.body, content)
        return
    # A server of files wants none, and the connection goes on.
    response = client.ask("1k", configure=upload)
    expect("the status", response.status, 405)
    expect("the methods that there are", response.fields.get("allow", "").replace(" ", ""), "GET,HEAD")
    again = client.ask("1k", handle=response.handle)
    expect("the number of further connections", again.handle.getinfo(pycurl.NUM_CONNECTS), 0)
    client.compare("1k", again.body)


CASES = {case.__name__: case for case in [files, head, ranges, conditions, compressed, parallel, post]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--url", required=True, help="the root of the server, with a slash at its end")
    parser.add_argument("--ca", required=True, help="certificates to trust, PEM")
    parser.add_argument("--www", required=True, help="the files that the server has")
    parser.add_argument("--echoes", action="store_true", help="the server sends back what is posted to /echo")
    arguments = parser.parse_args()
    try:
        CASES[arguments.case](Client(arguments))
    except (Wrong, pycurl.error) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
