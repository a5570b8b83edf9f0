"""A node of Python Cronken, as somebody runs it who has never heard of us. It ends with whoever holds the other end of
its standard input, and says `ready` when its jobs are loaded and it listens for events."""

import argparse
import asyncio
import sys

from cronken import Cronken

# How often it is looked whether the node listens for events, before it counts as broken.
LOOKS_MAX = 3000
LOOK_EVERY = 0.01


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--namespace", default="{cronken}")
    parser.add_argument("--name", help="what the node calls itself instead of the host's name")
    parser.add_argument("--heartbeat", type=int, default=30)
    parser.add_argument("--output", type=int, default=5, help="seconds between two writes of the output")
    parser.add_argument("--quiet", action="store_true", help="say nothing but warnings")
    return parser.parse_args()


async def listens(cronken):
    """Waits until events are heard: those that are sent before are lost."""
    channel = f"{cronken.namespace}:__events__"
    for _ in range(LOOKS_MAX):
        if channel.encode() in cronken.pubsub.channels or channel in cronken.pubsub.channels:
            return
        await asyncio.sleep(LOOK_EVERY)
    raise RuntimeError(f"nobody listens to {channel}")


async def main():
    wanted = arguments()
    cronken = Cronken(
        {"host": "127.0.0.1", "port": wanted.port},
        namespace=wanted.namespace,
        log_level="WARNING" if wanted.quiet else "DEBUG",
        heartbeat_cadence=wanted.heartbeat,
        output_cadence=wanted.output,
    )
    if wanted.name:
        cronken.host = wanted.name
    lifetime = await cronken.start()
    await listens(cronken)
    print("ready", flush=True)
    over = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await asyncio.wait([lifetime, asyncio.ensure_future(over)], return_when=asyncio.FIRST_COMPLETED)


asyncio.run(main())
