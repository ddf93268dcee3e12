# What the comparisons share: the program that answers for our reader, and seeds that can be repeated.
"""Questions go to the program all at once, for it reads and answers line by line."""

import gzip
import json
import os
import pathlib
import random
import subprocess

DATA = pathlib.Path(__file__).parents[2] / "data"


def answers(questions):
    """What our reader makes of each."""
    lines = "".join(json.dumps(it) + "\n" for it in questions)
    done = subprocess.run(
        [os.environ["OSLO_ANSWERS"]], input=lines.encode(), capture_output=True, check=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(questions), f"{len(found)} answers to {len(questions)} questions"
    return found


def chance(test):
    """Random choices of a test; OSLO_SEED repeats those of a run that failed."""
    seed = os.environ.get("OSLO_SEED") or str(random.SystemRandom().randrange(1 << 32))
    print(f"{test.id()}: OSLO_SEED={seed}", flush=True)
    return random.Random(seed)


def releases():
    """The head and the sections of each release."""
    for path in sorted(DATA.glob("nova-options-*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            head, *sections = [json.loads(line) for line in file]
        yield head, sections
