#!/usr/bin/env python3
"""A plug-in program: writes the checksums of the files in a directory.

    program: {plugin: {command: /usr/local/lib/cronhold/checksum.py, settings: {directory: /data, algorithm: sha256}}}
"""

import hashlib
import json
import os
import signal
import sys


def send(kind, **keys):
    # Without the flush, Cronhold sees nothing before the end.
    print(json.dumps({"type": kind, **keys}), flush=True)


def finish(outcome, message):
    send("result", outcome=outcome, message=message)
    sys.exit(0)


def main():
    start = json.loads(sys.stdin.readline())
    if start["protocol"] != 1:
        finish("error", f"protocol {start['protocol']} is not supported")
    settings = start["settings"]
    done = 0

    # Cronhold sends SIGTERM to stop a run. The result says what is left to do.
    signal.signal(signal.SIGTERM, lambda *_: finish("failure", f"stopped after {done} files"))

    try:
        algorithm = settings.get("algorithm", "sha256")
        hashlib.new(algorithm)
        directory = settings["directory"]
        names = sorted(entry.name for entry in os.scandir(directory) if entry.is_file())
    except (KeyError, ValueError, OSError) as error:
        finish("error", f"invalid settings: {error}")
    for name in names:
        send("progress", percent=100 * done // len(names), text=name)
        with open(os.path.join(directory, name), "rb") as file:
            digest = hashlib.file_digest(file, algorithm) if hasattr(hashlib, "file_digest") else None
            if digest is None:
                digest = hashlib.new(algorithm, file.read())
        send("output", text=f"{digest.hexdigest()}  {name}")
        done += 1
    if done == 0:
        finish("failure", f"{directory} has no files")
    finish("success", f"{done} files")


main()
