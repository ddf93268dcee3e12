# The drive as other programs read it: images, cloud-init's data source, Ironic's own library.
"""Both forms must tell a host the same, in the words that cloud-init expects."""

import collections
import json
import logging
import pathlib
import subprocess
import tempfile
import unittest

from cloudinit import distros, helpers, safeyaml, sources, util
from cloudinit.config import cc_update_etc_hosts, schema
from cloudinit.distros import ug_util
from cloudinit.sources import DataSourceConfigDrive
from openstack.baremetal import configdrive

import support

N_HOSTS = 15
FOLDERS = ("2012-08-10", "latest")


def config(drive):
    """The cloud-config of a drive."""
    return safeyaml.load(drive["files"]["user_data"])


class Drives(unittest.TestCase):
    """Random hosts."""

    @classmethod
    def setUpClass(cls):
        rng, cls.seed = support.chance()
        cls.hosts = [support.host(rng) for _ in range(N_HOSTS)]
        # The whole of what a drive may have, in one of them at least.
        cls.hosts[0]["given"] = {"metaData": "{role: x}", "vendorData": '{"cloud-init": "#cloud-config\\n{}"}'}
        cls.drives = support.drives(cls.hosts)
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.images = []
        for drive in cls.drives:
            folder = tempfile.mkdtemp(dir=scratch.name)
            image = support.write_image(drive, folder)
            cls.images.append((drive, image, support.extracted(image, folder)))

    def setUp(self):
        print(self.seed)

    def test_xorriso_finds_every_file_in_every_folder(self):
        for drive, _, folder in self.images:
            files = {
                f"openstack/{at}/{name}": text.encode()
                for at in FOLDERS
                for name, text in drive["files"].items()
            }
            self.assertEqual(support.tree(folder), files)

    def test_isoinfo_reads_label_names_and_contents(self):
        for drive, image, _ in self.images[:5]:
            head = support.program("isoinfo", "-d", "-i", image)
            self.assertIn("Volume id: config-2\n", head)
            self.assertIn("Rock Ridge signatures version 1 found", head)
            self.assertIn(f"Volume size is: {image.stat().st_size // 2048}\n", head)
            names = set(support.program("isoinfo", "-R", "-f", "-i", image).split())
            for name, text in drive["files"].items():
                path = f"/openstack/latest/{name}"
                self.assertIn(path, names)
                self.assertEqual(support.program("isoinfo", "-R", "-x", path, "-i", image), text)

    def test_the_label_by_which_cloud_init_looks_for_drives_is_found(self):
        _, image, _ = self.images[0]
        done = subprocess.run(["blkid", "-p", "-o", "export", image], capture_output=True, check=True)
        found = dict(line.split("=", 1) for line in done.stdout.decode().split("\n") if "=" in line)
        self.assertIn(found["LABEL"], DataSourceConfigDrive.LABEL_TYPES)
        self.assertIn(found["TYPE"], DataSourceConfigDrive.FS_TYPES)

    def test_cloud_inits_own_source_reads_the_image(self):
        for host, (drive, _, folder) in zip(self.hosts, self.images):
            found = DataSourceConfigDrive.read_config_drive(str(folder))
            self.assertEqual(found["version"], 2)
            self.assertEqual(found["metadata"]["instance-id"], host["instanceUuid"])
            self.assertEqual(found["metadata"]["local-hostname"], host.get("fqdn", host["hostName"]))
            self.assertEqual(found["userdata"].decode(), drive["files"]["user_data"])
            self.assertEqual(found["networkdata"], drive["json"]["network_data"])
            self.assertEqual(found.get("vendordata2"), drive["json"].get("vendor_data"))
            if "vendorData" in host["given"]:
                text = sources.convert_vendordata(found["vendordata2"])
                self.assertTrue(text.startswith("#cloud-config"))

    def test_what_ironic_makes_of_the_json_form_is_the_same_drive(self):
        for drive, _, folder in self.images:
            form = dict(drive["json"])
            with configdrive.populate_directory(form.pop("meta_data"), **form) as theirs:
                theirs, ours = support.tree(theirs), support.tree(folder)
            self.assertEqual(set(theirs), set(ours))
            for path, content in theirs.items():
                read = json.loads if path.endswith(".json") else bytes
                self.assertEqual(read(content), read(ours[path]), path)

    def test_the_cloud_config_is_what_cloud_inits_schema_takes(self):
        known = schema.get_schema()
        for drive in self.drives:
            self.assertTrue(drive["files"]["user_data"].startswith("#cloud-config\n"))
            schema.validate_cloudconfig_schema(config(drive), known, strict=True)

    def test_names_users_and_passwords_are_those_of_the_host(self):
        distro = distros.fetch("debian")("debian", {}, helpers.Paths({}))
        for host, drive in zip(self.hosts, self.drives):
            found = config(drive)
            users, _ = ug_util.normalize_users_groups(found, distro)
            keys = {host["user"]["name"]: host["user"]["authorizedKeys"]}
            self.assertEqual({name: it["ssh_authorized_keys"] for name, it in users.items()}, keys)
            for name, it in users.items():
                self.assertEqual(it.get("sudo"), None if name == "root" else "ALL=(ALL) NOPASSWD:ALL")
            self.assertEqual(found["disable_root"], "root" not in keys)
            names = util.get_hostname_fqdn(found, Cloud(host["hostName"]))
            self.assertEqual(names[:2], (host["hostName"], host.get("fqdn", host["hostName"])))
            passwords = [it["password"] for it in found.get("chpasswd", {}).get("users", [])]
            self.assertEqual(passwords, [host["rootPassword"]] if "rootPassword" in host else [])
            self.assertEqual(found["growpart"]["mode"], "auto")

    def test_a_host_finds_its_whole_name_without_dns(self):
        distro = distros.fetch("debian")("debian", {}, helpers.Paths({}))
        for host, drive in zip(self.hosts, self.drives):
            with self.subTest(host["hostName"]), tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "hosts"
                file.write_text("127.0.0.1 localhost\n192.0.2.7 other\n")
                distro.hosts_fn = str(file)
                cloud = Cloud(host["hostName"], distro)
                cc_update_etc_hosts.handle("", config(drive), cloud, logging.getLogger(), [])
                names = [line.split() for line in file.read_text().split("\n") if line]
                own = [["127.0.1.1", host["fqdn"], host["hostName"]]] if "fqdn" in host else []
                self.assertEqual(names, [["127.0.0.1", "localhost"], ["192.0.2.7", "other"], *own])

    def test_given_user_data_takes_the_place_of_ours(self):
        text = "#!/bin/sh\necho gr\u00fc\u00dfe\n"
        drive = support.drives([{**self.hosts[0], "given": {"userData": text}}])[0]
        self.assertEqual(drive["files"]["user_data"], text)

    def test_the_same_host_gives_the_same_drive(self):
        self.assertEqual(support.drives(self.hosts), self.drives)
        self.assertEqual(len({it["hash"] for it in self.drives}), N_HOSTS)


Name = collections.namedtuple("Name", ["hostname", "is_default"])


class Cloud:
    """A cloud that knows the name of the host only."""

    def __init__(self, name, distro=None):
        self.name, self.distro = name, distro

    def get_hostname(self, fqdn=False, metadata_only=False):
        """As cloud-init asks its data source."""
        return Name(self.name, False)
