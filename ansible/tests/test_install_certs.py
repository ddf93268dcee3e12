"""The playbook that brings certificates to hosts: what arrives, what is refused by name, and what an audit expects of them."""

import hashlib
import json
import unittest

from certificates import Authority
from support import BIN, TemporaryDirectoryTest, collection_module, collections_path

certificate_faults = collection_module("filter.certificate_faults").certificate_faults

# Runner and host are one machine here, so both have their files in one folder, under different names.
START = 'mkdir -p /var/lib/openstack && mount --bind "$0" /var/lib/openstack && exec "$@"'

AUDIT = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: osp.edpm.edpm_install_certs, tasks_from: audit}
    - ansible.builtin.copy: {content: "{{ edpm_audit_expected | to_json }}", dest: "{{ playbook_dir }}/expected"}
"""


class Faults(unittest.TestCase):
    """What is said of single certificates."""

    @classmethod
    def setUpClass(cls):
        cls.authority = Authority()

    def faults(self, at="192.0.2.7", **properties):
        pem, _ = self.authority.issue("h.lab", **{"address": "192.0.2.7", **properties})
        return certificate_faults(pem, self.authority.pem, at)

    def test_a_certificate_as_cert_manager_issues_it_is_good_whatever_its_key(self):
        self.assertEqual(self.faults(), [])
        # libvirt 9.0 refuses the usage, not the key.
        self.assertEqual(self.faults(is_elliptic=True), [])
        self.assertEqual(self.faults(at="2001:db8::7", address="2001:0db8::0007"), [])

    def test_what_libvirt_and_qemu_would_not_start_with_is_named(self):
        self.assertEqual(self.faults(enciphers=False), ["The certificate lacks key encipherment among its keyUsages."])
        self.assertEqual(self.faults(is_client=False), ["The certificate lacks client auth among its keyUsages."])
        self.assertEqual(self.faults(address=None), [
            "The certificate is not for the address 192.0.2.7, at which other hosts look for this one.",
        ])
        self.assertEqual(self.faults(at="h.lab", address=None), [])
        self.assertEqual(self.faults(at="other.lab"), [
            "The certificate is not for the address other.lab, at which other hosts look for this one.",
        ])
        # Another service may use it.
        self.assertEqual(self.faults(at="", enciphers=False, address=None), [])

    def test_times_and_what_is_no_certificate_are_named(self):
        [fault] = self.faults(begins=-9, ends=-1)
        self.assertRegex(fault, r"^The certificate expired at \d{4}-\d\d-\d\d \d\d:\d\d UTC[.]$")
        [fault] = self.faults(begins=1)
        self.assertIn("The certificate is not valid before ", fault)
        pem, _ = self.authority.issue("h.lab")
        [fault] = certificate_faults(pem, Authority(ends=-1).pem)
        self.assertIn("The certificate of its authority expired at ", fault)
        # An issuer such as ACME gives no authority.
        self.assertEqual(certificate_faults(pem, "\n"), ["The certificate of its authority is missing or cannot be read."])
        self.assertEqual(certificate_faults("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", self.authority.pem),
                         ["The certificate is missing or cannot be read."])

    def test_of_a_bundle_the_authority_of_the_certificate_counts_wherever_it_stands(self):
        pem, _ = self.authority.issue("h.lab")
        another, former = Authority(ends=-1, name="another").pem, Authority(ends=-1).pem
        for bundle in (another + self.authority.pem, self.authority.pem + another, former + self.authority.pem):
            self.assertEqual(certificate_faults(pem, bundle), [])
        # Also where another one stands between them, which comes with the certificate.
        chain = Authority(name="between").issue("h.lab")[0] + self.authority.issue("between")[0]
        self.assertEqual(certificate_faults(chain, another + self.authority.pem), [])
        for certificates in (pem, chain):
            [fault] = certificate_faults(certificates, Authority(name="another").pem + former)
            self.assertIn("The certificate of its authority expired at ", fault)


class InstallCerts(TemporaryDirectoryTest):
    @classmethod
    def setUpClass(cls):
        cls.authority = Authority()

    def give(self, folder, host="h.lab", **properties):
        """Gives the run a certificate of a host; its content by the names of the files."""
        certificate, key = self.authority.issue(host, **properties)
        texts = {"tls.crt": certificate, "tls.key": key, "ca.crt": self.authority.pem}
        for name, text in texts.items():
            self.write(f"openstack/certs/{folder}/{host}-{name}", text)
        return texts

    def run_playbook(self, playbook="osp.edpm.install_certs"):
        """Runs the playbook; its exit code, and what it said in one line."""
        done = self.command(
            "unshare", "--mount", "sh", "-c", START, self.directory / "openstack",
            BIN / "ansible-playbook", "--diff", "-i", "h,", "-c", "local",
            "-e", json.dumps({"ansible_become": False, "canonical_hostname": "h.lab"}), playbook,
            env={
                "PATH": f"{self.directory}/bin:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
                "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
            },
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def test_each_service_gets_its_own_files_and_a_second_run_changes_nothing(self):
        given = {folder: self.give(folder) for folder in ("ovn/default", "libvirt/default")}
        self.give("ovn/default", "h2.lab")
        self.write("openstack/cacerts/nova/tls-ca-bundle.pem", self.authority.pem)
        code, said = self.run_playbook()
        self.assertEqual(code, 0, said)
        self.assertNotIn("PRIVATE KEY", said)
        for folder, texts in given.items():
            for name, text in texts.items():
                path = self.directory / "openstack/certs" / folder / name
                self.assertEqual((path.read_text(), path.stat().st_mode & 0o777, path.stat().st_uid), (text, 0o600, 0))
        self.assertEqual((self.directory / "openstack/cacerts/nova/tls-ca-bundle.pem").stat().st_mode & 0o777, 0o600)
        self.assertIn("changed=0", self.run_playbook()[1])

    def test_a_renewed_certificate_has_the_metadata_agent_start_again_once(self):
        self.write("bin/systemctl", '#!/bin/sh\necho "$*" >>"${0%/*}/asked"\nexit 5\n').chmod(0o755)
        asked = self.directory / "bin" / "asked"
        self.give("ovn/default")
        self.assertEqual(self.run_playbook()[0], 0)
        self.assertFalse(asked.exists())
        self.give("neutron-metadata/default")
        for _ in range(2):
            code, said = self.run_playbook()
            self.assertEqual(code, 0, said)
        self.assertEqual(asked.read_text(), "try-restart edpm_ovn_metadata_agent.service\n")

    def test_a_host_without_a_certificate_of_its_own_is_refused_before_anything_is_written(self):
        # Another host's name begins like this one's.
        self.give("ovn/default", "h.lab-2")
        code, said = self.run_playbook()
        self.assertNotEqual(code, 0)
        self.assertIn("/var/lib/openstack/certs/ovn/default has no h.lab-tls.crt: the certificate of service ovn", said)
        self.assertFalse((self.directory / "openstack/certs/ovn/default/tls.crt").exists())

    def test_an_expired_certificate_is_refused_and_the_one_before_it_stays(self):
        texts = self.give("ovn/default")
        self.assertEqual(self.run_playbook()[0], 0)
        self.give("ovn/default", begins=-9, ends=-1)
        code, said = self.run_playbook()
        self.assertNotEqual(code, 0)
        self.assertIn("The certificate expired at ", said)
        self.assertIn("This is /var/lib/openstack/certs/ovn/default/h.lab-tls.crt.", said)
        self.assertEqual((self.directory / "openstack/certs/ovn/default/tls.crt").read_text(), texts["tls.crt"])

    def test_an_audit_expects_what_it_was_given_by_digest_and_nothing_else(self):
        self.write("audit.yml", AUDIT)
        (self.directory / "openstack").mkdir()
        code, said = self.run_playbook("audit.yml")
        self.assertEqual(code, 0, said)
        self.assertEqual(json.loads((self.directory / "expected").read_text()), [])
        texts = self.give("ovn/default")
        self.write("openstack/cacerts/ovn/tls-ca-bundle.pem", self.authority.pem)
        self.assertEqual(self.run_playbook("audit.yml")[0], 0)
        files = {f"certs/ovn/default/{name}": text for name, text in texts.items()}
        files["cacerts/ovn/tls-ca-bundle.pem"] = self.authority.pem
        self.assertEqual(json.loads((self.directory / "expected").read_text()), [
            f"file|/var/lib/openstack/{path}|{hashlib.sha256(text.encode()).hexdigest()}|root:root|600" for path, text in files.items()
        ])


if __name__ == "__main__":
    unittest.main()
