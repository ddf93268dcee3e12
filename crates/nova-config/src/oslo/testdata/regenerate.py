# Prints what the installed oslo.config reads from each tricky text, as the JSON of expected.json.
"""Run it where oslo.config is installed: python3 regenerate.py > expected.json"""

import importlib.metadata
import json
import os
import tempfile

from oslo_config import cfg

CASES = {
    "nothing": "",
    "only blank lines and comments": "\n  \n# a = 1\n;b = 2\n\n",
    "an option": "[DEFAULT]\ndebug = True\n",
    "no newline at the end": "[DEFAULT]\ndebug = True",
    "a colon": "[DEFAULT]\ndebug: True\n",
    "an equals sign before a colon": "[DEFAULT]\nurl = http://a:80/\n",
    "a colon before an equals sign": "[DEFAULT]\nalias: { \"a\": \"b=c\" }\n",
    "no spaces": "[DEFAULT]\na=b=c\n",
    "an empty value": "[DEFAULT]\na =\nb=   \n",
    "a value that begins in the next line": "[libvirt]\ncpu_models =\n  Nehalem,\n\tHaswell\n",
    "continuation lines": "[a]\nk = one\n  two\n      three  \n",
    "a blank line ends a value": "[a]\nk = one\n\n  two\n",
    "a line of spaces ends a value": "[a]\nk = one\n   \n  two\n",
    "a comment ends a value": "[a]\nk = one\n# no\n  two\n",
    "an indented comment continues a value": "[a]\nk = one\n  # two\n",
    "an indented header continues a value": "[a]\nk = one\n  [b]\n",
    "an indented option continues a value": "[a]\nk = one\n  l = two\n",
    "a header ends a value": "[a]\nk = one\n[b]\n  two\n",
    "an indented first line": "  [a]\nk = one\n",
    "repeated keys": "[pci]\ndevice_spec = { \"a\": \"1\" }\ndevice_spec = { \"a\": \"2\" }\n",
    "a section in two parts": "[a]\nk = 1\n[b]\nk = 2\n[a]\nk = 3\n",
    "a comment behind a value belongs to it": "[a]\nk = one # two\nl = one ; two\n",
    "double quotes": "[a]\nk = \"one\"\n",
    "single quotes": "[a]\nk = 'one'\n",
    "spaces inside quotes": "[a]\nk = \"  one  \"\n",
    "quotes that differ": "[a]\nk = \"one'\n",
    "a quote at the beginning": "[a]\nk = \"one\n",
    "a quote at the end": "[a]\nk = one\"\n",
    "a lone quote": "[a]\nk = \"\nl = '\n",
    "a pair with nothing inside": "[a]\nk = \"\"\n",
    "three quotes": "[a]\nk = \"\"\"\n",
    "quotes in quotes": "[a]\nk = \"\"one\"\"\nl = '\"one\"'\n",
    "quotes across lines stay": "[a]\nk = \"one\n  two\"\n",
    "quotes on the first of two lines": "[a]\nk = \" one \"\n  two\n",
    "quotes on the second line stay": "[a]\nk = one\n  \"two\"\n",
    "a dollar sign": "[a]\nk = $my_ip\nl = $$x\n",
    "a key with spaces inside": "[a]\none two = 3\n",
    "a key with a hyphen": "[a]\none-two = 3\n",
    "capitals": "[A]\nKey = V\n[DEFAULT]\nk = 1\n[default]\nk = 2\n",
    "spaces in a header": "[ a ]\nk = 1\n",
    "a header of one space": "[ ]\nk = 1\n",
    "brackets in a header": "[a]b]\nk = 1\n",
    "two brackets": "[[a]]\nk = 1\n",
    "spaces behind a header": "[a]   \nk = 1\n",
    "carriage returns": "[a]\r\nk = 1\r\nl = 2\r\n",
    "old line ends": "[a]\rk = 1\r  2\r",
    "a form feed is no indent": "[a]\nk = 1\n\x0cl = 2\n",
    "separators are stripped": "[a]\nk = \x1c1\x1f\n",
    "a no-break space is stripped": "[a]\nk = \u00a01\u00a0\n",
    "a line separator stays in the line": "[a]\nk = 1\u20282\n",
    "letters beyond ASCII": "[a]\nk = Grüße → ☃\n",
    "a NUL": "[a]\nk = 1\x002\n",
    "no assignment": "[a]\nk = 1\nsecond\n",
    "an empty key": "[a]\n= 1\n",
    "an empty key with a colon": "[a]\n: 1\n",
    "a header without its end": "[a\nk = 1\n",
    "a header with a comment": "[a] # note\nk = 1\n",
    "an empty header": "[]\nk = 1\n",
    "a lone bracket": "[\n",
    "an option above all headers": "k = 1\n[a]\n",
    "two options above all headers": "\nk = 1\nl = 2\n",
    "a bad line below an option above all headers": "k = 1\nbad\n",
    "a continued option above all headers": "k = 1\n  2\n\n[a]\n",
    "a byte order mark": "\ufeff[a]\nk = 1\n",
    "YAML": "libvirt:\n  cpu_mode: custom\n",
    "JSON": "{\"libvirt\": 1}\n",
    "a template's mark": "[a]\nk = {{ value }}\n{% endif %}\n",
}


def read(text):
    """What oslo.config sees in one file: its sections, or the first place that it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "nova.conf")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        sections = {}
        try:
            cfg.ConfigParser(path, sections).parse()
        except cfg.ParseError as error:
            return {"message": error.msg, "line": error.lineno}
        return {"sections": sections}


print(json.dumps({
    "oslo.config": importlib.metadata.version("oslo.config"),
    "cases": [{"name": name, "text": text, **read(text)} for name, text in CASES.items()],
}, indent=1, ensure_ascii=True))
