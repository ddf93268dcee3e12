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
    description: what is known of other hosts, as ssh has it
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


def known_hosts(present, lines, given=""):
    """The text of the file: of its managed block, lines of hosts with other keys now go, and all others stay."""
    before, block, after = _parts(present)
    # Of a host with a key that stands there already, more names and keys are known than are given.
    news = [line for line in _given_lines(given) if not any(_is_in(line, known) for known in block)]
    for newer in (news, lines):
        replaced = set().union(*map(_names, newer))
        block = [*(line for line in block if not _names(line) & replaced), *newer]
    return "\n".join([*before, BEGIN, *sorted(set(block)), END, *after]) + "\n"


def _given_lines(text):
    """Lines of known hosts as those that we write: without ports, patterns, marks, and names that are hashed."""
    parts = (line.partition(" ") for line in text.splitlines())
    hosts = [{"names": re.sub(r"\[([^]]*)\]:[0-9]+", r"\1", names).split(","), "answer": key} for names, _, key in parts]
    return [line for line in known_hosts_lines(hosts) if _names(line)]


def _is_in(line, known):
    return line.partition(" ")[2] == known.partition(" ")[2] and _names(line) <= _names(known)


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
