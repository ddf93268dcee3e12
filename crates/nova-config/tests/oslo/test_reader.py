# Generated files, read by oslo.config and by ours: the same options, or both refuse for the same reason.
"""Files are made of fragments that matter to the format, so that most hold something tricky."""

import os
import tempfile
import unittest

from oslo_config import cfg

import support

N_FILES = 4000

REASONS = {
    "No ':' or '=' found in assignment": "NoAssignment",
    "Key cannot be empty": "EmptyKey",
    "Unexpected continuation line": "UnexpectedContinuation",
    "Invalid section (must end with ])": "UnclosedSection",
    "Empty section name": "EmptySection",
    "Section must be started before assignment": "NoSection",
}

HEADERS = ["[DEFAULT]", "[libvirt]", "[Libvirt]", "[ a ]", "[a]b]", "[[a]]", "[\u00e4]", "[a] ", "[x]\t"]
BAD_HEADERS = ["[]", "[", "[a", "[a] # note", "[a]x"]
KEYS = ["k", "cpu_mode", "alias", "a b", "a-b", "K", "\u00e4", "k ", "\u00a0k", "\x0ck", "'k'"]
SIGNS = ["=", ":", " = ", " : ", "==", "=:", ":=", " =", "= ", "\t=\t"]
VALUES = [
    "", "1", "one # two", "one ; two", '"one"', "'one'", '"one', "one'", '"', "'", '""', "''", '"""',
    "'\"a\"'", ' "  a  "', "a=b", "a:b", "[x]", "#", ";", "$my_ip", "$$", "\\$x", "\u00e4\u2603",
    "\u00a0x\u00a0", "\x1cx\x1f", "a\u2028b", "a\x0bb", "a\x85b", "a\x00b", "{ \"a\": \"1\" }", "\\", "%(x)s",
]
LINES = [
    "", " ", "\t", "# note", ";note", " # not a note", "  more", "\tmore", "  [b]", "  k = v", " \u00a0",
    "\u00a0x", "\x0cx = 1", "\x1c",
]
BAD_LINES = ["word", "= 1", ": 1", " = 1", "\ufeff[a]", "- a", "{"]
ENDS = ["\n"] * 20 + ["\r\n", "\r", " \n", "\t\n", "\n\n"]


def generated(chance):
    """One file: mostly right, so that what comes late is reached too."""
    text = chance.choice(["", "", "", "\n", "# begin\n", " x\n", "k = 1\n"])
    text += chance.choice(HEADERS) + "\n" if chance.random() < 0.9 else ""
    has_bad = chance.random() < 0.4
    for _ in range(chance.randrange(12)):
        kind = chance.random()
        if kind < 0.5:
            line = chance.choice(KEYS) + chance.choice(SIGNS) + chance.choice(VALUES)
        elif kind < 0.6:
            line = chance.choice(HEADERS)
        elif has_bad and kind < 0.68:
            line = chance.choice(BAD_HEADERS + BAD_LINES)
        else:
            line = chance.choice(LINES)
        text += line + chance.choice(ENDS)
    return text if chance.random() < 0.8 else text.rstrip("\n")


def oslo_reads(path, text):
    """What oslo.config makes of it."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    sections = {}
    try:
        cfg.ConfigParser(path, sections).parse()
    except cfg.ParseError as error:
        return {"line": error.lineno, "reason": REASONS[error.msg]}
    return {"sections": {name: options for name, options in sections.items() if options}}


class Reader(unittest.TestCase):
    """Ours against oslo.config's."""

    maxDiff = None

    def test_every_generated_file_is_read_as_oslo_config_reads_it(self):
        chance = support.chance(self)
        texts = [generated(chance) for _ in range(N_FILES)]
        ours = support.answers([{"text": it} for it in texts])
        n_refused = 0
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "nova.conf")
            for text, found in zip(texts, ours):
                expected = oslo_reads(path, text)
                n_refused += "reason" in expected
                # oslo.config notices the missing header where the value ends, we say where it begins.
                if expected.get("reason") == "NoSection" and found.get("reason") == "NoSection":
                    self.assertLessEqual(found["line"], expected["line"], repr(text))
                    continue
                self.assertEqual(found, expected, repr(text))
        self.assertTrue(N_FILES * 0.1 < n_refused < N_FILES * 0.9, n_refused)
