"""A plain ZooKeeper client that knows only castle-cron's document: it reads and writes znodes, watches them and takes the
lock. One JSON object a line is a request, and one a line is the reply. It ends with its standard input."""

import argparse
import json
import sys
import threading
import uuid

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.recipe.lock import Lock


class Client:
    def __init__(self, port):
        self.zk = KazooClient(hosts=f"127.0.0.1:{port}", timeout=10)
        self.zk.start(timeout=30)
        self.seen = {}
        self.mutex = threading.Lock()
        self.lock = None

    def get(self, path):
        """The data and what ZooKeeper knows about a znode; null if it does not exist."""
        try:
            data, stat = self.zk.get(path)
        except NoNodeError:
            return None
        return {"data": data.decode(), "version": stat.version, "ephemeral": stat.ephemeralOwner != 0}

    def children(self, path):
        return sorted(self.zk.get_children(path))

    def create(self, path, data, ephemeral=False):
        self.zk.create(path, data.encode(), ephemeral=ephemeral)

    def create_bytes(self, path, data):
        """Creates a znode with bytes, which are given as hexadecimal digits, and its parents."""
        self.zk.create(path, bytes.fromhex(data), makepath=True)

    def set(self, path, data):
        self.zk.set(path, data.encode())

    def delete(self, path):
        self.zk.delete(path)

    def set_field(self, path, key, value):
        """Changes one field of a JSON object, and only if nobody else has changed the znode meanwhile."""
        data, stat = self.zk.get(path)
        job = json.loads(data)
        job[key] = value
        self.zk.set(path, json.dumps(job).encode(), version=stat.version)

    def watch_data(self, path):
        """Notes what a znode has, each time that it changes."""
        self.seen[path] = []

        @self.zk.DataWatch(path)
        def note(data, stat):
            with self.mutex:
                self.seen[path].append(None if data is None else data.decode())

    def watch_children(self, path):
        """Notes the children of a znode, each time that they change."""
        self.seen[path] = []

        @self.zk.ChildrenWatch(path)
        def note(children):
            with self.mutex:
                self.seen[path].append(sorted(children))

    def noted(self, path):
        with self.mutex:
            return list(self.seen[path])

    def acquire(self, path):
        """Takes the lock with kazoo's own recipe, in one queue with the names of go-zookeeper."""
        self.lock = Lock(self.zk, path, extra_lock_patterns=["-lock-"])
        self.lock.acquire(timeout=30)

    def release(self, path):
        self.lock.release()

    def queue(self, path, name):
        """Queues for a lock with a name of go-zookeeper. Returns the name with its number."""
        full = self.zk.create(f"{path}/{name}", b"", ephemeral=True, sequence=True)
        return full.rsplit("/", 1)[1]

    def go_name(self):
        return f"_c_{uuid.uuid4().hex}-lock-"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    client = Client(parser.parse_args().port)
    for line in sys.stdin:
        request = json.loads(line)
        name = request.pop("ask")
        try:
            reply = {"ok": getattr(client, name)(**request)}
        except (NodeExistsError, NoNodeError) as error:
            reply = {"ok": type(error).__name__}
        except Exception as error:  # The test shows it.
            reply = {"error": f"{name}: {error!r}"}
        print(json.dumps(reply), flush=True)
    client.zk.stop()


main()
