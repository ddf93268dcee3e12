# What a real Ironic answers to a script of requests, kept beside it: the fake of simulated-cluster is held to it.
"""With IRONIC_ANSWERS_WRITE=1 the answers are written anew instead."""

import base64
import json
import os
import pathlib
import re
import time
import unittest
import urllib.error
import urllib.request

from support import PASSWORD, USER, Ironic

HERE = pathlib.Path(__file__).parent
SCRIPT = json.loads((HERE / "script.json").read_text())
GOLDEN = HERE / "answers.json"
WORDS = {f"m{it}": f"00000000-0000-4000-8000-00000000000{it}" for it in range(1, 5)}
WORDS |= {f"i{it}": f"00000000-0000-4000-9000-00000000000{it}" for it in range(1, 3)}
WORDS["fields"] = SCRIPT["fields"]
MOVED = r'Node {uuid} moved to provision state "([^"]*)" from state "[^"]*"; target provision state is "([^"]*)"'


# Power is looked at seldom, or often, for Ironic forgets then what went wrong with a machine.
CONFIG = """
[DEFAULT]
host = ironic
[conductor]
sync_power_state_interval = {interval}
"""
# It does not wait for a machine that is held.
HELD = """node_locked_retry_attempts = 1
[fake]
power_delay = 2
"""


def setUpModule():
    """A machine whose power is switched stays held for a while where deployments fail."""
    global ironics
    seldom = CONFIG.format(interval=3600)
    ironics = {
        "sound": Ironic(more=seldom),
        "storeless": Ironic(object_store=True, more=seldom + HELD),
        "forgetful": Ironic(more=CONFIG.format(interval=1)),
    }
    for it in ironics.values():
        unittest.addModuleCleanup(it.stop)
    for it in ironics.values():
        it.started()


def filled(value):
    """A value with what stands for {m1} and others."""
    text = json.dumps(value)
    for word, meaning in WORDS.items():
        text = text.replace("{%s}" % word, meaning)
    return json.loads(text)


def normal(value, ironic):
    """A value without what is another in each run."""
    text = json.dumps(value).replace(ironic.endpoint, "ENDPOINT")
    for word, meaning in WORDS.items():
        text = text.replace(meaning, "{%s}" % word)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00", "TIME", text)
    return json.loads(re.sub(r"req-[0-9a-f-]{36}", "REQUEST", text))


def said(body):
    """A server's own words."""
    try:
        packed = json.loads(body)
        packed = packed.get("error_message", packed)
        packed = json.loads(packed) if isinstance(packed, str) else packed
        found = packed.get("faultstring") or packed.get("description") or packed["error"]["message"]
    except (ValueError, KeyError, TypeError):
        found = body
    return found.split("Traceback")[0].strip()


def ask(ironic, step):
    """Status and content of an answer."""
    method, path = filled(step["ask"]).split(" ", 1)
    headers = {"X-OpenStack-Ironic-API-Version": step.get("version", "1.78")}
    headers |= {"Content-Type": "application/json", "Accept": "application/json"}
    login = step.get("login", PASSWORD)
    if login != "none":
        headers["Authorization"] = f"Basic {base64.b64encode(f'{USER}:{login}'.encode()).decode()}"
    data = json.dumps(filled(step["body"])).encode() if "body" in step else None
    request = urllib.request.Request(ironic.endpoint + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, body = answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return {"status": error.code, "says": said(error.read().decode())}
    found = json.loads(body) if body else None
    if path == "/":
        found = {"default_version": {it: found["default_version"][it] for it in ("min_version", "version")}}
    if isinstance(found, dict) and "provision_state" in found:
        fields = step.get("only", SCRIPT["fields"]).split(",")
        found = {key: value for key, value in found.items() if key in fields}
    if isinstance(found, dict) and "history" in found:
        # The fake keeps errors alone.
        errors = [it for it in found["history"] if it["severity"] == "ERROR"]
        found = {"history": [{key: it[key] for key in ("severity", "event")} for it in errors]}
    if isinstance(found, dict):
        for it in [found, *found.get("nodes", [])]:
            it.pop("links", None)
    return {"status": status, "body": found}


def until(ironic, step):
    """The states through which a machine went since it was waited for last, and where it is now."""
    name, end = step["until"], time.monotonic() + 60
    while True:
        node = ironic.api("GET", f"/v1/nodes/{name}", version="1.78")
        if all(node[key] == value for key, value in step["is"].items()):
            break
        assert time.monotonic() < end, f"{step['name']}: {node}"
        time.sleep(0.1)
    log = (ironic.folder / "log").read_text(errors="replace")
    moves = [list(it) for it in re.findall(MOVED.format(uuid=node["uuid"]), log)]
    seen = ironic.seen.setdefault(name, [])
    new, ironic.seen[name] = moves[len(seen):], moves
    tells = step.get("tells", "").split(",") if "tells" in step else []
    return {"moves": new, "tells": {key: node[key] for key in tells}}


class Answers(unittest.TestCase):
    """Word for word."""

    maxDiff = None

    def test_a_real_ironic_answers_as_the_kept_file_has_it(self):
        answers = {}
        for step in SCRIPT["steps"]:
            ironic = ironics[step.get("ironic", "sound")]
            answer = until(ironic, step) if "until" in step else ask(ironic, step)
            answers[step["name"]] = normal(answer, ironic)
        self.assertEqual(len(answers), len(SCRIPT["steps"]), "two steps have one name")
        if os.environ.get("IRONIC_ANSWERS_WRITE"):
            lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items()]
            GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        self.assertEqual(answers, json.loads(GOLDEN.read_text()), "IRONIC_ANSWERS_WRITE=1 writes it anew")
