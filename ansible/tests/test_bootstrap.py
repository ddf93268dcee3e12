"""The role that gives a host what comes before everything else: the user's command once, packages, and authorities."""

import json
import unittest

from certificates import Authority
from support import BIN, TemporaryDirectoryTest, collections_path

# What the role writes goes into directories of the test, in a mount namespace of its own.
START = """
set -e
for path in var/lib/edpm-config usr/local/share/ca-certificates; do
  mkdir -p "$0/$path" "/$path"
  mount --bind "$0/$path" "/$path"
done
exec "$@"
"""

DPKG_QUERY = """#!/bin/bash
for it in "${@:4}"; do [ "$it" = absent ] || echo "$it ii "; done
"""

PASSWORD = "password-of-the-archive"
# Upstream's own defaults, which users write out, and what asks for something.
DEFAULTS = {
    "edpm_bootstrap_fips_mode": "check",
    "edpm_bootstrap_release_version_package": ["rhoso-release"],
    "edpm_bootstrap_selinux_mode": "enforcing",
    "edpm_bootstrap_swap_size_megabytes": 1024,
}
OTHERS = {
    "edpm_bootstrap_fips_mode": ("enabled", " of: check, got: enabled: the mode is the host's own."),
    "edpm_bootstrap_release_version_package": (
        ["another"], " or more of: rhoso-release. Got no match for: another: no package of Debian names a release of OpenStack."),
    "edpm_bootstrap_selinux_mode": (
        "permissive", " of: disabled, enforcing, got: permissive: Debian runs without SELinux, whose mode is not changed."),
    "edpm_bootstrap_swap_size_megabytes": (
        4096, " of: 0, 1024, got: 4096: swap is the host's own, made by its image or by edpm_bootstrap_command."),
}


class Bootstrap(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.folder = self.directory / "root" / "usr" / "local" / "share" / "ca-certificates" / "edpm"
        self.program("dpkg-query", DPKG_QUERY)
        self.program("update-ca-certificates", f"#!/bin/sh\necho updated \"$@\" >>{self.directory}/updates\n")

    def program(self, name, text):
        self.write(f"bin/{name}", text).chmod(0o755)

    def bootstrap(self, **given):
        """Runs the playbook; its exit code, and what it said in one line."""
        given = {"edpm_bootstrap_ca_bundle": f"{self.directory}/bundle.pem", "ansible_become": False, **given}
        done = self.command(
            "unshare", "--mount", "bash", "-c", START, self.directory / "root",
            BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", json.dumps(given), "osp.edpm.bootstrap",
            env={
                "PATH": f"{self.directory}/bin:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
                "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
            },
        )
        self.assertNotIn(PASSWORD, done.stdout + done.stderr)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def test_the_users_command_runs_once_and_what_it_is_or_says_is_never_shown(self):
        ran = self.directory / "ran"
        command = f"echo {PASSWORD} | tee -a {ran}"
        for _ in range(2):
            code, said = self.bootstrap(edpm_bootstrap_command=command)
            self.assertEqual(code, 0, said)
        self.assertEqual(ran.read_text(), f"{PASSWORD}\n")
        code, said = self.bootstrap(edpm_bootstrap_command=f"{command}; exit 7")
        self.assertNotEqual(code, 0, said)
        self.assertIn("edpm_bootstrap_command ended with 7: run it on the host to see why.", said)
        # One that has failed is tried again.
        self.bootstrap(edpm_bootstrap_command=f"{command}; exit 7")
        self.assertEqual(ran.read_text(), f"{PASSWORD}\n" * 3)

    def test_the_host_trusts_each_certificate_of_the_bundle_and_no_older_one(self):
        first, second, third = (Authority().pem for _ in range(3))
        bundle = self.write("bundle.pem", "")
        bundle.write_text(f"# two authorities\n{first}\n{second}")
        code, said = self.bootstrap()
        self.assertEqual(code, 0, said)
        self.assertEqual([path.read_text() for path in sorted(self.folder.iterdir())], [first, second])
        code, said = self.bootstrap()
        self.assertIn("changed=0", said)
        self.assertEqual((self.directory / "updates").read_text(), "updated --fresh\n")
        bundle.write_text(third)
        self.bootstrap()
        self.assertEqual([path.read_text() for path in self.folder.iterdir()], [third])
        bundle.write_text("no certificate\n")
        code, said = self.bootstrap()
        self.assertNotEqual(code, 0, said)
        self.assertIn("there is no certificate in the bundle", said)
        self.assertEqual([path.read_text() for path in self.folder.iterdir()], [third])

    def test_what_upstreams_bootstrap_does_and_this_one_does_not_is_refused_by_name(self):
        asked = {"edpm_kernel_args": "hugepages=8", "edpm_tuned_profile": "x", "growvols_args": "/=8GB"}
        idle = {"edpm_kernel_hugepages": {}, "edpm_kernel_download_retries": 5, **DEFAULTS}
        code, said = self.bootstrap(**asked, **idle)
        self.assertNotEqual(code, 0, said)
        self.assertIn("edpm_kernel_args, edpm_tuned_profile, growvols_args ask for what this collection's bootstrap does not do", said)
        self.assertEqual(self.bootstrap(**idle)[0], 0)
        code, said = self.bootstrap(**{name: value for name, (value, _) in OTHERS.items()})
        self.assertNotEqual(code, 0, said)
        for name, (_, words) in OTHERS.items():
            self.assertIn(f"value of {name} must be one{words}", said)


if __name__ == "__main__":
    unittest.main()
