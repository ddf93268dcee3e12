"""What Kolla is told about the files of its containers: a key that it does not know is a mode that it does not set."""
import json
import unittest
from pathlib import Path

ROLES = Path(__file__).parent.parent / "osp" / "edpm" / "roles"


class KollaFiles(unittest.TestCase):
    def test_every_file_has_an_owner_and_a_mode_under_the_names_that_kolla_knows(self):
        content = json.loads((ROLES / "edpm_nova" / "files" / "kolla.json").read_text())
        self.assertTrue(content["config_files"])
        for entry in content["config_files"]:
            with self.subTest(entry["source"]):
                self.assertLessEqual({"source", "dest", "owner", "perm"}, set(entry))
                self.assertLessEqual(set(entry), {"source", "dest", "owner", "perm", "optional"})
                self.assertRegex(entry["perm"], r"^0[0-7]{3}$")
