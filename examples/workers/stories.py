#!/usr/bin/env python3
"""A worker in Python with three classes: a sum, a Fibonacci number that two children compute, and a flow that lets a
child add numbers. Run it with `cronhold worker --queue QUEUE -- ./stories.py`, or try it with
`cronhold worker check --class Fibonacci --args '[5]' -- ./stories.py`."""

import json
import sys

CLASSES = {
    "Sum": {"inports": {"in": {}, "ready": {}}, "outports": {"sum": {}}},
    "Fibonacci": {"outports": {"num": {}}},
    "Adder": {"inports": {"in": {}}, "outports": {}},
}


def send(message):
    print(json.dumps(message), flush=True)


def items_of(step, port):
    """All items of an in port. The message has the first ones; the others are requested."""
    found = step["in"][port]
    items, size = list(found["items"]), found["size"]
    while len(items) < size:
        send({"t": "need", "step": step["step"], "id": 1, "items": {"port": port, "from": len(items)}})
        reply = json.loads(sys.stdin.readline())
        if reply["t"] == "cancel":
            return None
        items += reply["found"]["items"]
    return items


def add_up(step):
    if step["in"]["ready"]["size"] == 0:
        return "suspend", []
    numbers = items_of(step, "in")
    if numbers is None:
        return None, []
    acts = [{"write": {"port": "sum", "data": sum(numbers)}}]
    if numbers:
        acts.insert(0, {"take": {"port": "in", "count": len(numbers)}})
    return "done", acts + [{"take": {"port": "ready"}}]


def fibonacci(step):
    (n,), children = step["args"], step["children"]
    if n <= 2:
        return "done", [{"write": {"port": "num", "data": 1}}]
    if not children:
        return "suspend", [
            {"queue": {"name": f"job{number}", "class": "Fibonacci", "args": [n - number]}} for number in (1, 2)
        ]
    if any(child["status"] != "completed" for child in children.values()):
        return "suspend", []
    total = sum(child["out"]["num"]["items"][0] for child in children.values())
    takes = [{"take": {"port": "num", "child": name}} for name in children]
    return "done", takes + [{"write": {"port": "num", "data": total}}]


def count(step):
    """Adds numbers to the state, a few in each step."""
    numbers = step["in"]["in"]["items"][:3]
    total, seen = step["state"].get("total", [0, 0])
    acts = [{"set": {"total": [total + sum(numbers), seen + len(numbers)]}}]
    if numbers:
        acts.append({"take": {"port": "in", "count": len(numbers)}})
    if step["in"]["in"]["size"] > len(numbers):
        acts.append({"run": {"self": True}})
    return "done", acts


STEPS = {"Sum": add_up, "Fibonacci": fibonacci, "Adder": count}

for line in sys.stdin:
    message = json.loads(line)
    if message["t"] == "hello":
        send({"t": "ready", "protocol": 1, "classes": CLASSES})
    elif message["t"] == "step":
        ending, acts = STEPS[message["class"]](message)
        if ending:
            send({"t": "end", "step": message["step"], "as": ending, "acts": acts})
    elif message["t"] == "quiet":
        break
