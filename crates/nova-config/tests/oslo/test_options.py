# What ours tells of options and values, against what oslo.config does with them.
"""oslo.config is given the options that our data names, files are generated, and each line is compared."""

import logging
import os
import random
import tempfile
import unittest

from oslo_config import cfg, types

import support

# oslo.config logs each old name, of which there are many here.
logging.disable(logging.WARNING)

GROUP_SIZE = 150

VALUES = [
    "", "0", "1", "-1", "+1", "007", "1_000", "1__0", "_1", "1_", "0x10", "1e3", "1.5", ".5", "5.",
    "-0.5", "inf", "nan", "99999999999999999999999999", "65535", "65536", "-2", "\u0663", " 1 ", "1\n2",
    "true", "True", "ON", "yes", "no", "off", "maybe", "none", "None", "auto", "a", "a,b", "1,2",
    "1,,2", "1,a", ",", "a:1", "a:1,b:2", "a:1,a:2", ":1", "a:1,b", "node:0,size:2048,count:64",
    "10.0.0.1", "10.0.0.256", "010.0.0.1", "10.0.0", "::1", "::g", "fe80::1%eth0", "compute-0",
    "compute-0.example.com.", "a_b.example.com", "-a", "a-", "a..b", "123", "1.2.3.a",
    "gr\u00fc\u00dfe", "http://a", "HTTPS://a/b?c#d", "ws://a", "telnet://a:1", "a b", "//a",
    "mailto:a", "x" * 63, "x" * 64, "x." * 126 + "x", "x." * 127, "x." * 126 + "xx", "x" * 255,
    "x" * 256,
]


def real(known):
    """oslo.config's type; plain text where the data has none."""
    if known is None:
        return types.String()
    known = dict(known)
    kind = known.pop("is")
    if kind == "list":
        return types.List(item_type=real(known["item"]))
    made = {
        "string": types.String, "integer": types.Integer, "float": types.Float,
        "boolean": types.Boolean, "dict": types.Dict, "uri": types.URI, "address": types.IPAddress,
        "hostname": types.Hostname, "host": types.HostAddress, "domain": types.HostDomain,
    }
    return made[kind](**known)


def takes(kind, value):
    """Whether oslo.config takes the value."""
    try:
        real(kind)(value)
    except ValueError:
        return False
    return True


def kinds(sections):
    """The different types of a release."""
    found = {}
    for section in sections:
        for known in section["options"].values():
            if "type" in known:
                found[repr(known["type"])] = known["type"]
    return list(found.values())


def near(kind):
    """Values on the edges of a type."""
    edges = [kind.get("min"), kind.get("max")]
    for edge in [it for it in edges if it is not None]:
        yield from (str(edge), str(edge - 1), str(edge + 1))
    for choice in kind.get("choices", []):
        yield from (str(choice), str(choice).upper(), f"{choice}x", f"{choice},{choice}")
    for scheme in kind.get("schemes", []):
        yield f"{scheme}://a"
    yield from near(kind["item"]) if "item" in kind else ()


class Values(unittest.TestCase):
    """Ours against oslo.config's types."""

    def test_every_value_is_taken_or_refused_as_oslo_config_does(self):
        all_kinds = {repr(kind): kind for _, sections in support.releases() for kind in kinds(sections)}
        extra = [{"is": it} for it in ("address", "hostname", "host", "domain", "float", "integer")]
        extra += [{"is": "list", "item": {"is": "string", "choices": ["a", "a,b", "1"]}}]
        all_kinds.update({repr(it): it for it in extra})
        asked = [
            {"type": kind, "value": value}
            for kind in all_kinds.values()
            for value in [*VALUES, *near(kind)]
        ]
        n_refused = 0
        for question, ours in zip(asked, support.answers(asked)):
            kind, value = question["type"], question["value"]
            theirs = takes(kind, value)
            n_refused += not theirs
            # Of URIs we judge the scheme alone, and of letters beyond ASCII we cannot tell.
            is_lenient = kind["is"] == "uri" or not value.isascii()
            if is_lenient and ours:
                continue
            self.assertEqual(ours, theirs, question)
        self.assertGreater(n_refused, 1000)


# Options of oslo.config itself, which every instance has registered already.
ITS_OWN = ("config_dir", "config_file", "config_source", "shell_completion")

# Options that decide which others are judged.
DECISIVE = {"auth_type": "password", "auth_plugin": "password", "compute_driver": "libvirt.LibvirtDriver"}


class Recorded(dict):
    """Options of a section, and which of them were read."""

    def __init__(self, section, options, read):
        super().__init__(options)
        self.section, self.read = section, read

    def __getitem__(self, name):
        self.read.append((self.section, name))
        return super().__getitem__(name)


def made(name, kind, names, is_multi):
    """An option of oslo.config."""
    if is_multi:
        return cfg.MultiOpt(name, item_type=kind, deprecated_opts=names)
    return cfg.Opt(name, type=kind, deprecated_opts=names)


def registered(head, sections):
    """All options of a release, known to an instance of oslo.config."""
    conf = cfg.ConfigOpts()
    options, old = {}, {}
    for section in sections:
        own = dict(section["options"])
        if section.get("auth"):
            shared = {name: dict(it) for name, it in head["auth"].items()}
            for it in shared.values():
                if "now" in it:
                    it["now"] = [section["section"], it["now"][1]]
            own = {**shared, **own}
        for name, known in own.items():
            if name in ITS_OWN:
                continue
            if "now" in known:
                old.setdefault(tuple(known["now"]), []).append((section["section"], name))
            else:
                options[section["section"], name] = known
    for (section, name), known in options.items():
        names = [cfg.DeprecatedOpt(it, group=group) for group, it in old.get((section, name), [])]
        conf.register_opt(
            made(name, real(known.get("type")), names, known.get("multi")),
            group=None if section == "DEFAULT" else section,
        )
    return conf, options, old


def lines(options, old, rng):
    """Lines of files, each with its section: every option and old name once, well or badly spelt."""
    found = [(place, place) for place in options]
    found += [(place, present) for present, many in old.items() for place in many]
    for (section, name), present in found:
        # Told in one sentence, whatever stands there.
        if section in ("api_database", "database"):
            continue
        spelt = rng.random()
        value = DECISIVE.get(name) or rng.choice(["1", "true", "a", "-7", "", "none", "http://a"])
        if spelt < 0.15:
            name = name + "x" if rng.random() < 0.5 else name.upper()
        if 0.15 <= spelt < 0.2 and section != "DEFAULT":
            section = section.capitalize()
        yield present, (section, name, value)


def files(options, old, rng):
    """Lines that fit into one file: of the names of an option the present one hides the others."""
    found = list(lines(options, old, rng))
    rng.shuffle(found)
    while found:
        group, left = {}, []
        for present, line in found:
            is_free = len(group) < GROUP_SIZE and present not in group
            if is_free:
                group[present] = line
            else:
                left.append((present, line))
        yield list(group.values())
        found = left


def oslo_judges(conf, options, path):
    """Which lines' options are read, under which names, and whether their values are refused."""
    conf([], project="nova", default_config_files=[path], default_config_dirs=[])
    read = []
    namespace = conf._namespace
    for parsed in (namespace._parsed, namespace._normalized):
        for idx, sections in enumerate(parsed):
            parsed[idx] = {it: Recorded(it, found, read) for it, found in sections.items()}
    judged = {}
    for section, name in options:
        read.clear()
        try:
            conf._get(name, None if section == "DEFAULT" else conf._get_group(section))
            is_refused = False
        except ValueError:
            is_refused = True
        for place in set(read):
            judged[place] = {"refused": is_refused, "old": place != (section, name)}
    conf.reset()
    return judged


# Sections of the control plane: ours says that they have no effect on a compute, whatever the value is.
ELSEWHERE = ("conductor", "filter_scheduler", "scheduler")


class Judgement(unittest.TestCase):
    """What ours tells of lines against what oslo.config does with them."""

    def compare(self, release, conf, options, group):
        """One file."""
        text = "".join(f"[{section}]\n{name} = {value}\n" for section, name, value in group)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "nova.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            judged = oslo_judges(conf, options, path)
        told = {}
        for line, message in support.answers([{"release": release, "text": text}])[0]:
            told.setdefault(line, []).append(message)
        for idx, (section, name, value) in enumerate(group):
            messages = " ".join(told.get(2 * idx + 2, []))
            place = (section if section == "DEFAULT" else section.lower(), name)
            theirs = judged.get(place)
            context = f"{release}: [{section}] {name} = {value!r}: {messages or 'nothing'}; {theirs}"
            if "has no effect on a compute" in messages:
                self.assertIn(section.lower(), ELSEWHERE, context)
                continue
            is_unread = "is not known to nova" in messages
            self.assertEqual(is_unread, theirs is None, context)
            if theirs:
                self.assertEqual("is an old name of" in messages, theirs["old"], context)
                self.assertEqual("has a value that" in messages, theirs["refused"], context)
        return sum(it["refused"] for it in judged.values()), len(judged)

    def test_every_line_is_judged_as_oslo_config_treats_it(self):
        rng: random.Random = support.chance(self)
        for head, sections in support.releases():
            conf, options, old = registered(head, sections)
            n_refused = n_read = 0
            for group in files(options, old, rng):
                refused, read = self.compare(head["release"], conf, options, group)
                n_refused, n_read = n_refused + refused, n_read + read
            self.assertGreater(n_refused, 100, head["release"])
            self.assertGreater(n_read, 800, head["release"])


# Values that refer to options, well or badly: those that they name have values that are read as they are.
NAMED = [("DEFAULT", "my_ip"), ("DEFAULT", "state_path"), ("libvirt", "virt_type")]
REFERENCES = [
    "$my_ip", "${my_ip}", "$libvirt.virt_type", "${libvirt.virt_type}/a", "a$my_ip$state_path", "$virt_type",
    "$my_ip.x", "$my_ip.", "${my_ip.}", "$MY_IP", "$Libvirt.virt_type", "$DEFAULT.my_ip", "$libvirt", "$no_such",
    "a$no_such", "${no_such}", "$my-ip", "$_", "$$my_ip", "$$no_such", "$$$no_such", "$$$$no_such",
    "\\$no_such", "\\$$no_such", "${no_such", "${}", "$", "a$", "$1", "$ my_ip", "$-", "$my_ip$", "$my_ip,$no_such",
]


def refers_to_nothing(conf, section, name):
    """Whether oslo.config fails on the value because of what it refers to."""
    try:
        conf._get(name, None if section == "DEFAULT" else conf._get_group(section))
    except (cfg.NoSuchOptError, cfg.NoSuchGroupError, cfg.TemplateSubstitutionError):
        return True
    return False


class References(unittest.TestCase):
    """What ours says of references to other options, against what oslo.config does with them."""

    def test_every_reference_is_found_as_oslo_config_finds_it(self):
        rng: random.Random = support.chance(self)
        for head, sections in support.releases():
            conf, options, _ = registered(head, sections)
            decisive = [*DECISIVE, "auth_section", *ITS_OWN]
            free = [
                place for place, known in options.items()
                if "type" not in known and not known.get("multi") and place not in NAMED
                and place[0] not in ("api_database", "database", *ELSEWHERE) and place[1] not in decisive
            ]
            chosen = list(zip(rng.sample(free, len(REFERENCES) * 4), REFERENCES * 4))
            text = "".join(f"[{section}]\n{name} = {value}\n" for (section, name), value in chosen)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "nova.conf")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                conf([], project="nova", default_config_files=[path], default_config_dirs=[])
                theirs = [refers_to_nothing(conf, *place) for place, _ in chosen]
                conf.reset()
            told = {
                line for line, message in support.answers([{"release": head["release"], "text": text}])[0]
                if "has a $ with the name of no option" in message
            }
            ours = [2 * idx + 2 in told for idx in range(len(chosen))]
            for (place, value), one, other in zip(chosen, ours, theirs):
                self.assertEqual(one, other, f"{head['release']}: {place} = {value!r}")
            self.assertGreater(sum(theirs), 50, head["release"])
