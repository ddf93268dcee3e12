# What the tests share: an Ironic of its own, and what ours makes of it.
"""Each Ironic is one process over a copy of empty tables; it ends with the test module."""

import base64
import contextlib
import json
import os
import pathlib
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
import urllib.request
import uuid

import bcrypt

IRONIC = pathlib.Path(os.environ["IRONIC"])
USER, PASSWORD = "operator", "only-for-tests"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv"
# Names of the machines that were enrolled, so that each test has its own.
COUNT = iter(range(1000))
# Below the kernel's ephemeral ports, so that no outgoing connection takes a port between its choice and its use. Other
# processes start their search elsewhere.
PORTS = (20_000 + (os.getpid() * 97 + step) % 12_000 for step in range(12_000))

CONFIG = """
[DEFAULT]
auth_strategy = http_basic
http_basic_auth_user_file = {folder}/htpasswd
rpc_transport = none
enabled_hardware_types = fake-hardware
enabled_boot_interfaces = fake
enabled_deploy_interfaces = fake,ramdisk
enabled_vendor_interfaces = fake
enabled_network_interfaces = noop
tempdir = {folder}
[api]
host_ip = 127.0.0.1
port = {port}
[database]
connection = sqlite:///{folder}/ironic.sqlite
[deploy]
configdrive_use_object_store = {object_store}
"""


def free_port():
    """A port without a listener, which this process chooses once."""
    for port in PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Ironic:
    """A running Ironic. With an object store that it lacks, each deployment with a drive fails."""

    def __init__(self, object_store=False, more=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ironic-"))
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        shutil.copy(IRONIC / "ironic.sqlite", self.folder / "ironic.sqlite")
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        (self.folder / "htpasswd").write_text(f"{USER}:{hashed}\n")
        config = self.folder / "ironic.conf"
        settings = CONFIG.format(folder=self.folder, port=port, object_store=object_store)
        config.write_text(settings + more)
        # How far each machine's moves were read in its log.
        self.seen = {}
        program = IRONIC / "venv/bin/ironic"
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen([program, "--config-file", config], stdout=log, stderr=log)

    def log(self):
        """Its last words."""
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def started(self):
        """Waits until it answers, and its conductor has told which hardware it knows."""
        end = time.monotonic() + 150
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log()
            try:
                if self.api("GET", "/v1/drivers")["drivers"]:
                    return self
            except OSError:
                pass
            time.sleep(0.2)
        raise AssertionError(self.log())

    def stop(self):
        """Ends it, and all that it kept."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder)

    def api(self, method, path, body=None, version="1.99"):
        """An answer of the API to another client than ours."""
        basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        headers = {"X-OpenStack-Ironic-API-Version": version, "Authorization": f"Basic {basic}"}
        headers |= {"Content-Type": "application/json", "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.endpoint + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def stored(self, uuid):
        """What it keeps of a machine's instance: its API does not show the drive."""
        with sqlite3.connect(f"file:{self.folder}/ironic.sqlite?mode=ro", uri=True) as tables:
            (text,) = tables.execute("select instance_info from nodes where uuid = ?", (uuid,)).fetchone()
        return json.loads(text or "{}")

    def ask(self, task, **changes):
        """What ours answers."""
        return self.asking(task, **changes)()

    def asking(self, task, **changes):
        """Begins to ask ours; the answer comes by calling the result."""
        secret = {"username": USER, "password": PASSWORD}
        question = {"endpoint": self.endpoint, "authentication": "http_basic", "secret": secret, "task": task}
        process = subprocess.Popen(
            [os.environ["IRONIC_ANSWERS"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdin.write((json.dumps(question | changes) + "\n").encode())
        process.stdin.close()

        def answer():
            out, errors = process.stdout.read(), process.stderr.read()
            assert process.wait() == 0, errors.decode()
            return json.loads(out)

        return answer

    def follow(self, the_set, until=None, secrets=None, **changes):
        """What our controller makes of a set, with an API server in memory, until its conditions have those
        reasons or begin their messages so, or until it is gone."""
        own = {"ironic": {"username": USER, "password": PASSWORD}, "keys": {"authorized_keys": KEY}}
        question = {"set": the_set, "secrets": own | (secrets or {}), "until": until or {}} | changes
        program = pathlib.Path(os.environ["IRONIC_ANSWERS"]).parent / "baremetal_sets"
        answer = subprocess.run([program], input=json.dumps(question) + "\n", capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    def a_set(self, name, resource_class, hosts, **ironic):
        """A set as the API server holds it."""
        how = {"endpoint": self.endpoint, "authentication": "http_basic", "secret": "ironic"}
        how |= {"machine": {"resourceClass": resource_class}} | ironic
        return {
            "apiVersion": "baremetal.openstack.org/v1beta1",
            "kind": "OpenStackBaremetalSet",
            "metadata": {"name": name, "namespace": "openstack", "uid": f"uid-of-{name}", "generation": 1},
            "spec": {
                "provisioner": "ironic",
                "ironic": how,
                "ctlplaneInterface": "eno1",
                "ctlplaneGateway": "192.0.2.1",
                "domainName": "example.org",
                "deploymentSSHSecret": "keys",
                "baremetalHosts": hosts,
            },
        }

    def enroll(self, **more):
        """A machine of a resource class of its own, which no other test takes."""
        name = f"m{next(COUNT)}"
        machine = {"name": name, "driver": "fake-hardware", "resource_class": name, **more}
        uuid = self.ask({"enroll": machine})["uuid"]
        return name, uuid

    def enroll_many(self, count, *verbs):
        """Machines of one resource class: one is brought there, the others are copies of it."""
        name, first = self.enroll()
        self.reach(first, *verbs)
        with sqlite3.connect(self.folder / "ironic.sqlite", timeout=60) as tables:
            columns = [it[1] for it in tables.execute("pragma table_info(nodes)")]
            # A conductor may hold the first one for a moment yet.
            same = ",".join(it for it in columns if it not in ("id", "uuid", "name", "reservation"))
            copy = f"insert into nodes (uuid, name, {same}) select ?, ?, {same} from nodes where uuid = ?"
            more = [(str(uuid.uuid4()), f"{name}-{it}", first) for it in range(1, count)]
            tables.executemany(copy, more)
        return name, [first, *(it[0] for it in more)]

    def reach(self, uuid, *verbs):
        """Another client brings a machine there."""
        for verb, state in verbs:
            self.api("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": verb})
            self.until(uuid, state)

    def until(self, name, value, field="provision_state", kind="nodes"):
        """Waits for a field to have a value."""
        end = time.monotonic() + 60
        while (found := self.api("GET", f"/v1/{kind}/{name}")[field]) != value:
            assert time.monotonic() < end, f"{found} instead of {value}"
            time.sleep(0.1)


def condition(the_set, kind="Ready"):
    """A condition of a set."""
    return next(it for it in the_set["status"]["conditions"] if it["type"] == kind)


def edited(the_set, **changes):
    """A set after a human's edit of its spec."""
    the_set["spec"] |= changes
    the_set["metadata"]["generation"] += 1
    return the_set


def deleted(the_set):
    """A set that a human deleted, and that is held."""
    the_set["metadata"]["deletionTimestamp"] = "2026-11-22T12:00:00Z"
    return the_set


def bring(resource_class, name="compute-0", the_set="set-1", **more):
    """The task to bring a machine of that class into service for a host."""
    network = {"uplink": {"card": "eno1"}, "mtu": 1500, "address": "192.0.2.10/24", "gateway": "192.0.2.1"}
    user = {"name": "cloud-admin", "authorizedKeys": [KEY]}
    host = {"hostName": name, "user": user, "network": network}
    task = {"set": the_set, "host": host, "machine": {"resourceClass": resource_class}, "attempts": 2}
    return {"bring": task | more}


def release(name="compute-0", the_set="set-1", **more):
    """The task to give a host's machine back."""
    return {"release": {"set": the_set, "host": name, **more}}
