"""Asks hosts for their own ssh keys: writes known hosts for the run, and the keys as the container's last words.

Each argument is `host:port`, or `host:port SHA256:…` where only the key with that fingerprint may be trusted.
It never fails: a host whose key is not learned is refused by ssh later, and the others go on.
"""

import base64
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys

KNOWN_HOSTS = os.environ.get("EDPM_KNOWN_HOSTS", "/runner/host_keys/known_hosts")
RESULT = os.environ.get("EDPM_RESULT_FILE", "/dev/termination-log")
SCANNER = os.environ.get("EDPM_SSH_KEYSCAN", "ssh-keyscan")
# Of every key of this type the first characters are the same: without them 80 keys fit into the 4,096 bytes.
KEY_TYPE, PREFIX = "ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAI"
KEY = re.compile(re.escape(PREFIX) + "[A-P][A-Za-z0-9+/]{42}")
# What of a name is a pattern in known hosts, or an option of ssh-keyscan, is asked for nothing.
NAME = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:%_-]*")
NO_ANSWER, NO_ED25519, NO_SCANNER = "?", "-", "!"
TIMEOUT = 5  # seconds, for one connection
WORKERS = 20


def scan(host, port, kinds):
    """The (type, key) pairs that the host offers of these types; a process each, so that none speaks for another."""
    command = [SCANNER, "-T", str(TIMEOUT), "-t", kinds, "-p", port, "--", host]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=3 * TIMEOUT, check=False,
        )
    except subprocess.TimeoutExpired:
        return []
    lines = (line.split() for line in done.stdout.decode("ascii", "replace").splitlines())
    return [(words[1], words[2]) for words in lines if len(words) == 3]


def ask(address):
    """What is told of the host: the key behind the prefix, or a sign for why there is none."""
    host, _, port = address.rpartition(":")
    if not NAME.fullmatch(host) or not port.isascii() or not port.isdigit():
        return NO_ANSWER
    try:
        for kind, key in scan(host, port, "ed25519"):
            if kind == KEY_TYPE and KEY.fullmatch(key):
                return key[len(PREFIX):]
        return NO_ED25519 if scan(host, port, "ecdsa,rsa") else NO_ANSWER
    except OSError:
        return NO_SCANNER


def fingerprint(key):
    """As `ssh-keygen -l` prints it."""
    digest = hashlib.sha256(base64.b64decode(key)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def known_host(address, told, only):
    """The line by which ssh trusts the host in this run; empty where it shall not."""
    key = PREFIX + told
    if not KEY.fullmatch(key) or (only and fingerprint(key) != only):
        return ""
    host, _, port = address.lower().rpartition(":")
    name = host if port == "22" else f"[{host}]:{port}"
    return f"{name} {KEY_TYPE} {key}\n"


def main(arguments):
    """Asks many at a time: one that is silent costs the others nothing."""
    hosts = [argument.partition(" ")[::2] for argument in arguments]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        told = list(pool.map(ask, [address for address, _ in hosts]))
    lines = [known_host(address, key, only) for (address, only), key in zip(hosts, told)]
    with open(KNOWN_HOSTS, "w", encoding="ascii") as target:
        target.write("".join(lines))
    message = json.dumps({"v": 1, "keys": told}, separators=(",", ":"))
    with open(RESULT, "w", encoding="ascii") as target:
        target.write(message)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Exception as error:  # pylint: disable=broad-except
        print(f"edpm_host_keys: {type(error).__name__}: {error}", file=sys.stderr)
