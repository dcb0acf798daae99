"""Decodes files in the form of the QPACK corpus with pylsqpack, and compares them with the lists that they stand for.

decode.py LISTS.qif FILE.out CAPACITY BLOCKED [late]

With `late` the encoder stream arrives behind all sections, so that those that refer to the table are blocked first.
The exit status is 1 if a list differs.
"""

import struct
import sys

import pylsqpack


def lists(path):
    """The lists of a text: a field in a line, an empty line behind each list."""
    found, fields = [], []
    with open(path, "rb") as file:
        for line in file.read().split(b"\n"):
            if line.startswith(b"#"):
                continue
            if line:
                name, _, value = line.partition(b"\t")
                fields.append((name, value))
            elif fields:
                found.append(fields)
                fields = []
    if fields:
        found.append(fields)
    return found


def blocks(path):
    """The blocks of an encoded file: streams and bytes."""
    with open(path, "rb") as file:
        data = file.read()
    found, at = [], 0
    while at < len(data):
        stream_id, length = struct.unpack_from(">QI", data, at)
        found.append((stream_id, data[at + 12 : at + 12 + length]))
        at += 12 + length
    return found


def decode(encoded, capacity, blocked, late):
    decoder = pylsqpack.Decoder(capacity, blocked)
    decoded, waiting = {}, set()
    if late:
        encoded = sorted(encoded, key=lambda block: block[0] == 0)
    for stream_id, block in encoded:
        if stream_id == 0:
            for ready in decoder.feed_encoder(block):
                waiting.discard(ready)
                decoded[ready] = decoder.resume_header(ready)[1]
            continue
        try:
            decoded[stream_id] = decoder.feed_header(stream_id, block)[1]
        except pylsqpack.StreamBlocked:
            waiting.add(stream_id)
            if len(waiting) > blocked:
                sys.exit(f"{len(waiting)} streams are blocked at a time")
    if waiting:
        sys.exit(f"{len(waiting)} streams stay blocked")
    return [decoded[stream_id] for stream_id in sorted(decoded)]


def main():
    wanted = lists(sys.argv[1])
    late = sys.argv[5:] == ["late"]
    decoded = decode(blocks(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), late)
    if decoded != wanted:
        sys.exit(f"{sys.argv[2]}: the lists differ")


main()
