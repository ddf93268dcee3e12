# What the comparisons share: random hosts, their drives, and programs that read images.
"""Hosts are random but legal; CLOUDINIT_SEED repeats those of a run that failed."""

import base64
import gzip
import ipaddress
import json
import os
import pathlib
import random
import subprocess
import uuid

READERS = pathlib.Path(os.environ["READERS"])
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv"
MODES = ["802.3ad", "active-backup", "balance-alb", "balance-rr", "balance-tlb", "balance-xor", "broadcast"]


def drives(hosts):
    """What ours makes of each: files and both forms."""
    answers = answer(hosts)
    for host, it in zip(hosts, answers):
        assert "faults" not in it, f"{it['faults']}\n{json.dumps(host, indent=1)}"
    return answers


def answer(hosts):
    """What ours says of each, good or bad."""
    lines = "".join(json.dumps(it) + "\n" for it in hosts)
    done = subprocess.run([os.environ["CONFIG_DRIVES"]], input=lines.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(hosts), f"{len(found)} answers to {len(hosts)} hosts"
    return found


def program(name, *arguments):
    """The output of one of the unpacked programs."""
    libraries = [str(it) for it in READERS.glob("usr/lib/*-linux-gnu")]
    env = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}
    command = [str(READERS / "usr/bin" / name), *map(str, arguments)]
    done = subprocess.run(command, env=env, capture_output=True)
    assert done.returncode == 0, f"{command}: {done.stdout.decode()} {done.stderr.decode()}"
    return done.stdout.decode()


def write_image(drive, folder):
    """The image in a drive's packed form, as a file."""
    path = pathlib.Path(folder) / "drive.iso"
    path.write_bytes(gzip.decompress(base64.b64decode(drive["iso"], validate=True)))
    return path


def extracted(image, folder):
    """The files of an image, by the program that knows nothing of us."""
    target = pathlib.Path(folder) / "tree"
    program("xorriso", "-osirrox", "on", "-abort_on", "WARNING", "-indev", image, "-extract", "/", target)
    return target


def tree(folder):
    """Contents by path."""
    folder = pathlib.Path(folder)
    return {str(it.relative_to(folder)): it.read_bytes() for it in folder.rglob("*") if it.is_file()}


def chance():
    """Random choices of some tests, and the seed to repeat them."""
    seed = os.environ.get("CLOUDINIT_SEED") or str(random.SystemRandom().randrange(1 << 32))
    return random.Random(seed), f"CLOUDINIT_SEED={seed}"


def word(rng, letters="abcdefghijklmnopqrstuvwxyz0123456789", most=12):
    """Letters, the first of them no digit."""
    return rng.choice("abcdefghij") + "".join(rng.choices(letters, k=rng.randrange(most)))


def host(rng):
    """Any host without faults."""
    made = {
        "hostName": word(rng, most=60),
        "instanceUuid": str(uuid.UUID(int=rng.getrandbits(128))),
        "user": {
            "name": rng.choice(["root", word(rng)]),
            "authorizedKeys": [key(rng) for _ in range(rng.randint(1, 3))],
        },
        "network": network(rng),
        "given": {},
    }
    if len(made["hostName"]) < 50 and rng.random() < 0.7:
        made["fqdn"] = f"{made['hostName']}.{word(rng, most=8)}.org"
    if rng.random() < 0.5:
        plain = "x" + "".join(rng.choices(" !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~aZ0\u00e4\u20ac\U0001f600", k=12))
        made["rootPassword"] = rng.choice([plain, "$6$salt$" + word(rng)])
    if rng.random() < 0.3:
        made["given"]["metaData"] = json.dumps({"meta": {"role": word(rng)}, "availability_zone": word(rng)})
    if rng.random() < 0.3:
        made["given"]["vendorData"] = f"cloud-init: |\n  #cloud-config\n  timezone: Etc/{word(rng)}\n"
    return made


def key(rng):
    """A line of authorized keys."""
    start = rng.choice(["", "restrict ", 'from="10.0.0.0/8, *.org",command="echo \\" x" '])
    return start + KEY + rng.choice(["", " me@example.org", " a few words: #", " gr\u00fc\u00dfe"])


def network(rng):
    """A card or a bond, a VLAN on it or none, and an address."""
    cards = [f"eno{idx}" for idx in rng.sample(range(9), rng.randint(1, 4))]
    uplink = {"card": cards[0]}
    if len(cards) > 1:
        bond = {"bondInterfaces": cards, "bondMode": rng.choice(MODES), "bondOptions": options(rng)}
        uplink = {"bond": bond}
    start, prefix = 10 << 24, rng.choice([20, 24, 28, 30])
    if rng.random() < 0.5:
        start, prefix = 0x20010DB8 << 96, rng.choice([48, 64, 120, 126])
    net = ipaddress.ip_network((start, prefix))
    it = {"uplink": uplink, "mtu": rng.choice([1280, 1500, 9000]), "address": f"{net[-2]}/{prefix}"}
    if rng.random() < 0.5:
        it["vlanId"] = rng.randrange(1, 4095)
    if rng.random() < 0.5:
        it["gateway"] = str(net[1])
    if rng.random() < 0.5:
        it["dnsServers"] = rng.sample(["192.0.2.53", "2001:db8::53", "10.1.1.1", "9.9.9.9"], rng.randint(1, 3))
        it["dnsSearch"] = rng.sample(["example.org", "a.b"], rng.randint(0, 2))
    return it


def options(rng):
    """Options of a bond."""
    known = {"miimon": "200", "lacp_rate": "fast", "xmit_hash_policy": "layer3+4", "updelay": "0", "arp_interval": "9"}
    return {name: known[name] for name in rng.sample(sorted(known), rng.randint(0, 3))}
