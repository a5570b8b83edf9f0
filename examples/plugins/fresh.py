#!/usr/bin/env python3
"""A plug-in condition: holds if a file exists and was changed recently.

    conditions:
      - {plugin: {command: /usr/local/lib/cronhold/fresh.py, settings: {path: "/data/{{ date }}", seconds: 3600}}}
"""

import json
import os
import sys
import time


def main():
    settings = json.loads(sys.stdin.readline())["settings"]
    try:
        path, most = settings["path"], float(settings["seconds"])
        age = time.time() - os.stat(path).st_mtime
    except FileNotFoundError:
        return "does_not_hold", f"{path} does not exist"
    except (KeyError, ValueError, OSError) as error:
        return "error", str(error)
    if age > most:
        return "does_not_hold", f"{path} was changed {age:.0f} s ago"
    return "holds", ""


outcome, message = main()
print(json.dumps({"type": "result", "outcome": outcome, "message": message}))
