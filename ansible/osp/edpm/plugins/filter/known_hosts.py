"""The filters that make the lines of known hosts, and replace those of the managed block in a file of them."""

import re

DOCUMENTATION = """
name: known_hosts
short_description: the text of a file of known hosts, with these lines in its managed block
options:
  _input:
    description: the present text of the file
    type: str
    required: true
  lines:
    description: the lines of hosts whose keys were just read
    type: list
    elements: str
    required: true
  given:
    description: lines of all other hosts; without them those of the present block stay
    type: str
"""

# The marks that upstream's collection has, whose block is replaced.
BEGIN, END = "# BEGIN ANSIBLE MANAGED BLOCK", "# END ANSIBLE MANAGED BLOCK"
KEY = re.compile(r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) ([A-Za-z0-9+/]{40,1400}={0,2})(?: .*)?")
NAME = re.compile(r"[A-Za-z0-9_.:-]{1,253}")


def known_hosts_lines(hosts):
    """One line for each key of each host: its names, and what it answered, of which only public keys count."""
    return [
        f"{_patterns(host['names'])} {kind} {key}"
        for host in hosts
        for kind, key in sorted({found.groups() for found in map(KEY.fullmatch, str(host["answer"]).splitlines()) if found})
    ]


def _patterns(names):
    """The names as ssh looks for them: alone for port 22, else in brackets before the port."""
    # Upstream's lines have the brackets alone, which ssh never finds for port 22.
    return ",".join(f"{name},[{name}]*" for name in dict.fromkeys(map(str, names)) if NAME.fullmatch(name))


def _names(line):
    return {name for name in line.partition(" ")[0].split(",") if NAME.fullmatch(name)}


def known_hosts(present, lines, given=None):
    """The text of the file: outside of the managed block it stays as it is."""
    before, block, after = _parts(present)
    others = block if given is None else known_hosts_lines(
        {"names": names.split(","), "answer": key} for names, _, key in (line.partition(" ") for line in given.splitlines())
    )
    known = set().union(*map(_names, lines)) if lines else set()
    kept = [line for line in others if _names(line) and not _names(line) & known]
    return "\n".join([*before, BEGIN, *sorted({*kept, *lines}), END, *after]) + "\n"


def _parts(text):
    """The lines before the managed block, in it, and after it."""
    lines = text.splitlines()
    if BEGIN not in lines or END not in lines[lines.index(BEGIN):]:
        return lines, [], []
    begin = lines.index(BEGIN)
    end = lines.index(END, begin)
    return lines[:begin], lines[begin + 1:end], lines[end + 1:]


class FilterModule:
    """Gives the filters their names."""

    def filters(self):
        return {"known_hosts": known_hosts, "known_hosts_lines": known_hosts_lines}
