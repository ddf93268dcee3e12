"""The playbook that audits a host, against a podman, a systemd and a firewall that only answer: what it finds, and that it changes nothing."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import ANSIBLE, BIN, CALLBACKS, TemporaryDirectoryTest, collections_path

PODMAN = r"""#!/bin/bash
here=$(dirname "$0")
echo "podman $*" >>"$here/notes"
# It hangs until the test is over, which takes this program away: no limit is longer, and nothing is left behind.
if [ -n "${hangs:-}" ]; then
    while [ -e "$0" ]; do sleep 1; done
    exit 1
fi
case "$1 $2" in
"image exists") ;;
"image inspect") cat "$here/images/$5" 2>/dev/null || echo "id-of-$5" ;;
"run --rm") case "$*" in *tss* | *swtpm*) ;; *) echo libvirtd ;; esac ;;
"exec libvirt") echo "Running hypervisor: QEMU" ;;
"exec nova_compute") cd /var/lib/openstack/config/nova && sha256sum -- *nova*.conf | sort -k 2 ;;
"top nova_compute") echo nova-compute ;;
"rm "*) rm -rf "$here/containers/${*: -1}" ;;
"create --name")
    mkdir -p "$here/containers/$3"
    echo true >"$here/containers/$3/running"
    for word; do
        case $word in
        edpm_identity=*) echo "${word#*=}" >"$here/containers/$3/identity" ;;
        libvirt:1 | nova:1) "$0" image inspect --format x "$word" >"$here/containers/$3/image" ;;
        esac
    done ;;
"container inspect")
    cd "$here/containers/$5" 2>/dev/null || exit 125
    case $4 in
    *Running*Image*) echo "$(cat running) $(cat image)" ;;
    *Running*) echo "$(cat running) $(cat identity)" ;;
    *) echo "$(cat identity) $(cat image)" ;;
    esac ;;
*) exit 1 ;;
esac
"""

SYSTEMCTL = r"""#!/bin/bash
here=$(dirname "$0")
case "$*" in
"show --property=LoadState "*) echo LoadState=not-found ;;
"show "*) printf 'LoadState=loaded\nActiveState=active\n' ;;
# No other firewall is there.
"is-active "*firewalld* | "is-active "*nftables* | "is-active "*netfilter*) exit 3 ;;
"is-active "*) ! grep -qxF "${*: -1}" "$here/inactive" 2>/dev/null ;;
"is-enabled "*) echo enabled ;;
*) echo "systemctl $*" >>"$here/notes" ;;
esac
"""

# What it was given last is what the kernel has.
NFT = r"""#!/bin/bash
here=$(dirname "$0")
case "$*" in
--check*) ;;
--file*) grep -o 'comment ".*"' "$2" >"$here/kernel" ;;
*"list table inet edpm") cat "$here/kernel" ;;
*) exit 1 ;;
esac
"""

# What the roles write on the host goes into a directory of the test, in a mount namespace of its own.
START = """
set -e
mount -t tmpfs none /run
for path in etc/ssh etc/sysctl.d etc/systemd/system etc/tmpfiles.d etc/edpm-firewall usr/local/sbin home var/lib/edpm-config \
  var/lib/openstack var/lib/kolla var/lib/libvirt var/lib/nova; do
  mkdir -p "$0/$path" "/$path"
  mount --bind "$0/$path" "/$path"
done
mount --bind "$0/passwd" /etc/passwd
mount --bind "$0/group" /etc/group
[ -e "$0/run/edpm-firewall.loaded" ] && cp -p "$0/run/edpm-firewall.loaded" /run/
mkdir /run/libvirt "$0/run" 2>/dev/null || true
code=0
"$@" || code=$?
cp -p /run/edpm-firewall.loaded "$0/run/" 2>/dev/null || true
exit $code
"""

LOCAL = "a ansible_connection=local ansible_become=false\n"


class NovaAudit(TemporaryDirectoryTest):
    """The roles themselves deploy the host once; each test has a copy of it."""

    @classmethod
    def setUpClass(cls):
        cls.kept = pathlib.Path(tempfile.mkdtemp(prefix="edpm-ansible-audit-"))
        cls.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)
        cls.is_deployed = False

    def setUp(self):
        super().setUp()
        if self.is_deployed:
            self.copy(self.kept, self.directory)
        else:
            self.deploy()
            self.copy(self.directory, self.kept)
            type(self).is_deployed = True

    @staticmethod
    def copy(source, target):
        """Copies all that lies in a directory, with owners and modes."""
        subprocess.run(["cp", "--archive", f"{source}/.", target], check=True)

    @property
    def root(self):
        return self.directory / "root"

    @property
    def bin(self):
        return self.directory / "bin"

    def deploy(self):
        for name, text in {"podman": PODMAN, "systemctl": SYSTEMCTL, "nft": NFT}.items():
            self.write(f"bin/{name}", text).chmod(0o755)
        for name in ("systemd-run", "sysctl", "iptables-nft", "iptables-legacy"):
            self.write(f"bin/{name}", "#!/bin/bash\n[[ ${0##*/} = sys* ]]\n").chmod(0o755)
        users, groups = (pathlib.Path(path).read_text() for path in ("/etc/passwd", "/etc/group"))
        self.write("root/passwd", f"{users}nova:x:42436:42436::/home/nova:/bin/sh\n")
        self.write("root/group", f"{groups}nova:x:42436:\nlibvirt:x:42473:nova\n")
        self.write("src/01-nova.conf", "[DEFAULT]\nhost = h\n[x]\npassword = secret-of-nova\n")
        self.write("src/ssh-publickey", "ssh-ed25519 AAAA nova\n")
        self.write("hosts", LOCAL)
        for name in ("libvirt", "nova"):
            done = self.ansible(f"osp.edpm.{name}")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def host(self, path):
        """A file of the host, wherever it really is."""
        return self.root / path.lstrip("/")

    def ansible(self, playbook, hosts="a", **more):
        given = {
            "edpm_nova_config_src": f"{self.directory}/src",
            "edpm_nova_compute_image": "nova:1",
            "edpm_nova_libvirt_image": "libvirt:1",
            "canonical_hostname": "h",
            **more,
        }
        return self.command(
            "unshare", "--mount", "bash", "-c", START, self.root,
            BIN / "ansible-playbook", "-i", "hosts", "-e", json.dumps(given), playbook,
            env={
                "PATH": f"{self.bin}:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
                "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
                "ANSIBLE_CALLBACK_PLUGINS": CALLBACKS,
                "ANSIBLE_VARS_PLUGINS": str(ANSIBLE / "callback"),
                "EDPM_RUN_HOSTS": hosts,
                "EDPM_RESULT_FILE": str(self.directory / "result"),
            },
        )

    def report(self, hosts="a", playbook="osp.edpm.nova_audit", **more):
        """Audits the hosts; what the run reports of them."""
        done = self.ansible(playbook, hosts, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        text = (self.directory / "result").read_text()
        self.assertLessEqual(len(text.encode()), 4096)
        self.assertNotIn("secret-of-nova", done.stdout + text)
        message = json.loads(text)
        n_hosts = len(hosts.split(","))
        self.assertEqual((message["hosts"], message["changed"]), ("o" * n_hosts, [0] * n_hosts))
        return json.loads(message["report"])["audit"]

    def audit(self, **more):
        """Audits the host, which stays as it is; what was found."""
        before = self.snapshot()
        (self.bin / "notes").write_text("")
        total, found = self.report(**more).get("a", [0, []])
        self.assertEqual(self.snapshot(), before, "the audit has changed something")
        for line in (self.bin / "notes").read_text().splitlines():
            self.assertIn(" inspect ", line, "the audit does more than to look")
        self.assertEqual(total, len(found))
        return found

    def snapshot(self):
        def state(path):
            entry = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            return (entry.st_mode, entry.st_uid, entry.st_gid, entry.st_mtime_ns, content)

        return {str(path): state(path) for path in sorted(self.root.rglob("*"))}

    def test_a_host_as_the_roles_left_it_is_in_sync(self):
        self.assertEqual(self.audit(), [])

    def test_files_are_compared_by_content_owner_and_mode(self):
        config = "/var/lib/openstack/config/nova/01-nova.conf"
        self.host(config).write_text("[DEFAULT]\nhost = other\n")
        self.assertEqual(self.audit(), [f"file {config}: content"])
        self.host(config).chmod(0o644)
        self.assertEqual(self.audit(), [f"file {config}: content", f"file {config}: mode"])
        self.host(config).unlink()
        self.assertEqual(self.audit(), [f"file {config}: missing"])

    def test_a_file_that_was_not_given_is_found_and_its_name_is_not_repeated(self):
        self.host("/var/lib/openstack/config/nova/99-mine\nunit x: inactive.conf").write_text("")
        self.assertEqual(self.audit(), ["directory /var/lib/openstack/config/nova: other files"])

    def test_containers_and_units_are_found_by_name(self):
        shutil.rmtree(self.bin / "containers" / "libvirt")
        self.write("bin/containers/nova_compute/running", "false\n")
        self.write("bin/containers/nova_compute/image", "id-of-another\n")
        self.write("bin/inactive", "edpm_nova_compute.service\n")
        self.assertEqual(self.audit(), [
            "container libvirt: missing",
            "container nova_compute: not running",
            "container nova_compute: image",
            "unit edpm_nova_compute.service: inactive",
        ])

    def test_an_image_that_is_to_be_another_is_found(self):
        self.assertEqual(self.audit(edpm_nova_compute_image="nova:2"), ["container nova_compute: image"])

    def test_the_next_deployment_mends_rules_the_loader_owners_modes_and_an_image_that_got_the_name_of_another(self):
        kernel = self.bin / "kernel"
        rules = kernel.read_text()
        lost = "005 Allow vnc access on all networks."
        kernel.write_text("".join(line for line in rules.splitlines(True) if lost not in line))
        self.assertEqual(self.audit(), [f"rule {lost}: not loaded", "rules /etc/edpm-firewall: not loaded"])
        loader, unit = "/usr/local/sbin/edpm-firewall", "/etc/systemd/system/edpm_nova_compute.service"
        kolla = "/var/lib/kolla/config_files/nova_compute.json"
        self.host(loader).write_text("#!/bin/bash\ntrue\n")
        for path, owner in ((unit, 1), (kolla, 1), ("/var/lib/edpm-config/firewall/libvirt.yaml", 1)):
            os.chown(self.host(path), owner, owner)
        self.host("/etc/systemd/system/edpm-firewall.service").chmod(0o600)
        self.write("bin/images/nova:1", "id-of-another\n")
        found = self.audit()
        for part in (f"{loader}: content", f"{unit}: owner", f"{kolla}: owner", "libvirt.yaml: owner",
                     "edpm-firewall.service: mode", "container nova_compute: image", f"rule {lost}: not loaded"):
            self.assertEqual(sum(part in it for it in found), 1, (part, found))
        for name in ("libvirt", "nova"):
            done = self.ansible(f"osp.edpm.{name}")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual((kernel.read_text(), self.audit()), (rules, []))

    def compared(self, *expected):
        """What the script of the audit says of a host whose rules are loaded by iptables."""
        script = (ANSIBLE / "osp/edpm/roles/edpm_audit/files/edpm-audit").read_text()
        done = subprocess.run(
            ["unshare", "--mount", "bash", "-c", START, self.root, "bash", "-c", script],
            input="\n".join(expected), env={"PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin"},
            capture_output=True, text=True, check=True,
        )
        *lines, last = done.stdout.splitlines()
        self.assertEqual(last, "edpm-audit: done")
        return lines

    def test_rules_of_iptables_are_found_as_iptables_prints_them(self):
        (self.bin / "kernel").unlink()
        rules = ["ssh", "two words", "one's own", "gone"]
        written = "".join(f'-A EDPM-INPUT -m comment --comment "{it}" -j ACCEPT\n' for it in rules)
        self.host("/etc/edpm-firewall/rules.iptables").write_text(written)
        printed = ["ssh", '"two words"', '"one\\\'s own"']
        kernel = "".join(f"-A EDPM-INPUT -m comment --comment {it} -j ACCEPT\n" for it in printed)
        self.write("bin/iptables-nft", f"#!/bin/bash\ncat <<'END'\n{kernel}END\n").chmod(0o755)
        # Rules for addresses of IPv6 are not written for iptables at all.
        lines = self.compared(*(f"rule|{it}" for it in [*rules, "only IPv6"]))
        self.assertEqual(lines, ["rule gone: not loaded"])

    def test_a_host_whose_firewall_is_not_ours_has_no_rules_to_miss(self):
        (self.bin / "kernel").unlink()
        self.assertEqual(self.audit(deploy_edpm_openstack_run_firewall=False), [])

    def test_a_playbook_of_another_service_adds_what_it_expects(self):
        digest = hashlib.sha256(b"mine\n").hexdigest()
        self.write("motd.yml", f"""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.set_fact:
                    edpm_audit_expected: ['file|/etc/tmpfiles.d/motd|{digest}|root:root|644']
            """)
        self.write("all.yml", "- import_playbook: motd.yml\n- import_playbook: osp.edpm.nova_audit\n")
        self.assertEqual(self.audit(playbook="all.yml"), ["file /etc/tmpfiles.d/motd: missing"])
        self.write("root/etc/tmpfiles.d/motd", "mine\n")
        self.assertEqual(self.audit(playbook="all.yml"), [])

    def test_many_differences_are_counted_and_all_hosts_name_their_first_ones(self):
        for index in range(40):
            self.write(f"src/{index:02}-nova-{'x' * 80}.conf", "")
        hosts = [f"host-{index}" for index in range(4)]
        self.write("hosts", "".join(LOCAL.replace("a ", f"{host} ", 1) for host in hosts))
        report = self.report(",".join(hosts))
        self.assertEqual(sorted(report), hosts)
        for total, found in report.values():
            self.assertEqual(total, 40)
            self.assertIn("-nova-", found[0])

    def test_a_host_that_hangs_has_no_result_and_the_others_have_theirs(self):
        hanging = LOCAL.replace("a ", "b ", 1).rstrip() + """ edpm_playbook_environment='{"hangs": "1"}'\n"""
        self.write("hosts", LOCAL + hanging)
        # So long that the other host never takes it, on a busy machine either.
        done = self.ansible("osp.edpm.nova_audit", "a,b", edpm_any_errors_fatal=False, edpm_audit_task_timeout=20)
        message = json.loads((self.directory / "result").read_text())
        self.assertEqual(message["hosts"], "of", done.stdout + done.stderr)
        self.assertEqual(json.loads(message["report"])["audit"], {})


if __name__ == "__main__":
    unittest.main()
