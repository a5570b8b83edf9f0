"""A client of Python Cronken: it asks by Cronken's own code and models, and reads runs in the way that a web page has
to. One JSON object a line is a question, and one a line is the answer. It ends with its standard input."""

import argparse
import asyncio
import json
import sys

from coredis import Redis
from cronken import Cronken
from cronken.cronken import Lock

# A page shows so many results of each kind.
RESULTS_MAX = 5000
# What is wrong for so long is wrong.
LOOKS_MAX = 10
LOOK_EVERY = 0.02
FIELDS = {"job_name", "start_time", "host", "status", "retcode", "output", "duration"}


class Client:
    def __init__(self, port, namespace):
        self.cronken = Cronken({"host": "127.0.0.1", "port": port}, namespace=namespace, log_level="CRITICAL")
        self.redis = Redis(host="127.0.0.1", port=port)
        self.cronken.rclient = self.cronken.rclient_locks = self.redis
        self.namespace = namespace
        self.held = {}

    async def jobs(self):
        """Jobs that Cronken would load."""
        return await self.cronken.get_jobs()

    async def names(self):
        """All names that are there, those of broken jobs too."""
        return sorted(name.decode() for name in await self.redis.hkeys(f"{self.namespace}:jobs"))

    async def set_jobs(self, jobs):
        await self.cronken.set_jobs(jobs)

    async def update_jobs(self, jobs):
        await self.cronken.update_jobs(jobs)

    async def drop_job(self, name):
        """Removes a job as a web page does, which Cronken itself has no function for."""
        await self.redis.hdel(f"{self.namespace}:jobs", [name])

    async def raw_job(self, name):
        found = await self.redis.hget(f"{self.namespace}:jobs", name)
        return None if found is None else found.decode()

    async def put_raw(self, name, text):
        await self.redis.hset(f"{self.namespace}:jobs", {name: text})

    async def send(self, event):
        await self.cronken.send_event(json.dumps(event))

    async def dashboard(self):
        """What runs and what has run: three sorted sets, and the runs that they name."""
        return {
            "active": await self.active(),
            "success": await self.runs("results:success", "success"),
            "fail": await self.runs("results:fail", "fail", "frozen"),
        }

    async def active(self):
        """What runs. A run may end between the two looks of a page, so a mistake counts when it stays."""
        for _ in range(LOOKS_MAX):
            try:
                return await self.runs("rundata:active", "running")
            except ValueError:
                await asyncio.sleep(LOOK_EVERY)
        return await self.runs("rundata:active", "running")

    async def job_page(self, name):
        return {
            "success": await self.runs(f"results:{name}:success", "success"),
            "fail": await self.runs(f"results:{name}:fail", "fail", "frozen"),
        }

    async def runs(self, key, *statuses):
        """Runs that a sorted set names, the newest first, each as it has to be to be shown."""
        members = await self.redis.zrange(f"{self.namespace}:{key}", 0, RESULTS_MAX, rev=True, withscores=True)
        if not members:
            return []
        ids = [member.decode() for member, _ in members]
        found = await self.redis.hmget(f"{self.namespace}:rundata", ids)
        return [shown(run, text, score, statuses) for run, text, (_, score) in zip(ids, found, members)]

    async def output(self, run):
        """Lines of a run, in the form that a web page reads."""
        lines = await self.redis.lrange(f"{self.namespace}:rundata:output:{run}", 0, -1)
        return [line.decode() for line in lines]

    async def instances(self):
        members = await self.redis.zrange(f"{self.namespace}:instances", 0, -1)
        return [json.loads(member) for member in members]

    async def hold(self, key, ttl):
        """Takes a lock by Cronken's own code, by the last part of its key. Whether it was free."""
        lock = Lock(self.redis, f"{self.namespace}:locks:{key}", blocking_timeout=0.1, timeout=ttl)
        taken = await lock.acquire()
        if taken:
            self.held[key] = lock
        return bool(taken)

    async def free(self, key):
        await self.held.pop(key).release()


def shown(run, text, score, statuses):
    """A run as a page shows it. A run that could not be shown is a mistake."""
    if text is None:
        raise ValueError(f"run {run} has no metadata")
    data = json.loads(text)
    # Lua leaves out what is null, so Cronken's own runs may have less, but none may have more.
    if not set(data) <= FIELDS:
        raise ValueError(f"run {run} has fields that nobody knows: {set(data) - FIELDS}")
    if data["status"] not in statuses:
        raise ValueError(f"run {run} is {data['status']}, which has no place here")
    if not isinstance(data["start_time"], str) or not isinstance(data["job_name"], str):
        raise ValueError(f"run {run} has a time or a name that is no text")
    duration = data.get("duration")
    is_over = data["status"] != "running"
    if is_over != isinstance(duration, (int, float)):
        raise ValueError(f"run {run} is {data['status']} with duration {duration!r}")
    return {
        "id": run,
        "job": data["job_name"],
        "host": data["host"],
        "status": data["status"],
        "retcode": data.get("retcode"),
        "output": data.get("output"),
        "started": float(data["start_time"]),
        "ended": float(data["start_time"]) + duration if is_over else None,
        "score": score,
    }


async def answer(client, line):
    question = json.loads(line)
    name = question.pop("ask")
    try:
        return {"ok": await getattr(client, name)(**question)}
    except Exception as error:  # Whatever it is, whoever asked is to know.
        return {"error": f"{name}: {error!r}"}


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--namespace", default="{cronken}")
    wanted = parser.parse_args()
    client = Client(wanted.port, wanted.namespace)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await answer(client, line)), flush=True)


asyncio.run(main())
