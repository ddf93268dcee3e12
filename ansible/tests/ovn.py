"""A host with a real Open vSwitch and ovn-controller, and a real southbound database, in namespaces of a test's own."""

import json
import os
import pathlib
import re
import signal
import subprocess

from support import ANSIBLE, BIN, CALLBACKS, TemporaryDirectoryTest, collections_path

OVN = pathlib.Path(os.environ.get("EDPM_TEST_OVN_ROOT", "/nonexistent"))
ADDRESS = "192.0.2.11"
IMAGE = "ovn-controller:1"

# What the roles write goes into a directory of the test. The daemons end with the first process of the namespace.
START = """
set -e
ip link set lo up
ip address add 192.0.2.11/32 dev lo
mount -t tmpfs none /run
mkdir -p /run/netns
for path in etc/systemd/system etc/tmpfiles.d etc/openvswitch etc/neutron.conf.d var/lib/edpm-config var/lib/openstack \
  var/lib/kolla var/lib/neutron; do
  mkdir -p "$0/$path" "/$path"
  mount --bind "$0/$path" "/$path"
done
touch "$0/started"
# It reaps daemons that have ended, until its input ends.
read -r _
"""

# Units run what they would run: Open vSwitch as Debian's ovs-ctl starts it, and containers by podman. In the folder
# "units" are those that are active.
SYSTEMCTL = r"""#!/bin/bash
here=$(dirname "$0")
# Its options may stand behind it.
for word; do case $word in -*) ;; *) unit=$word ;; esac; done
container=$(echo "$unit" | sed -nE 's/^edpm_(.*)[.]service$/\1/p')
start() {
    [ -e "$here/units/$unit" ] && return
    touch "$here/units/$unit"
    case $unit in
    openvswitch-switch.service) "$here/start-openvswitch" ;;
    edpm_*) "$here/podman" start "$container" ;;
    esac
}
stop() {
    [ -e "$here/units/$unit" ] || return
    [ -z "$container" ] || "$here/podman" stop --time 1 "$container"
    rm -f "$here/units/$unit"
}
case $1 in
show)
    [ -e "$here/units/$unit" ] && state=active || state=inactive
    [ "$2" = --property=ActiveState ] || printf 'LoadState=loaded\n'
    echo "ActiveState=$state" ;;
is-enabled) [ -e "$here/units/$unit" ] && echo enabled ;;
is-active) [ -e "$here/units/$unit" ] ;;
list-unit-files) for it in "$here"/units/edpm_*; do echo "$(basename "$it") enabled enabled"; done ;;
start) start ;;
stop) stop; exit 0 ;;
disable) stop; exit 0 ;;
restart) stop; start ;;
esac
"""

OPENVSWITCH = r"""#!/bin/bash
set -e
here=$(dirname "$0")
cd "$here"
mkdir -p /run/openvswitch
[ -e conf.db ] || ovsdb-tool create conf.db "$OVN_ROOT/usr/share/openvswitch/vswitch.ovsschema"
[ -e /etc/openvswitch/system-id.conf ] || echo drawn-by-lot >/etc/openvswitch/system-id.conf
ovsdb-server conf.db --remote=punix:/run/openvswitch/db.sock --remote=db:Open_vSwitch,Open_vSwitch,manager_options \
  --pidfile --detach --log-file="$here/ovsdb.log" --no-chdir 2>/dev/null
ovs-vsctl --no-wait -- init -- set Open_vSwitch . external-ids:system-id="$(cat /etc/openvswitch/system-id.conf)"
ovs-vswitchd unix:/run/openvswitch/db.sock --pidfile --detach --log-file="$here/vswitchd.log" --no-chdir 2>/dev/null
"""

# A container is the command of its instructions for Kolla, on this host: its end is podman's SIGTERM.
PODMAN = r"""#!/bin/bash
here=$(dirname "$0")
name=${*: -1}
case "$1 $2" in
"image exists") ;;
"image inspect") echo "id-of-$5" ;;
"rm "*)
    "$0" stop --time 1 "$name"
    rm -rf "$here/containers/$name" ;;
"create --name")
    mkdir -p "$here/containers/$3"
    cd "$here/containers/$3"
    for word; do
        case $word in
        edpm_identity=*) echo "${word#*=}" >identity ;;
        *:/var/lib/kolla/config_files/config.json:ro) echo "${word%%:*}" >kolla ;;
        --volume=*) echo "${word#*=}" >>volumes ;;
        *:1) echo "id-of-$word" >image ;;
        esac
    done ;;
"start "*)
    cd "$here/containers/$2" || exit 125
    folder=$(sed -n 's#:/etc/neutron.conf.d:ro$##p' volumes)
    [ -z "$folder" ] || mount --bind "$folder" /etc/neutron.conf.d
    command=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"])' "$(cat kolla)")
    setsid $command >>log 2>&1 </dev/null &
    echo $! >pid ;;
"stop "*)
    cd "$here/containers/$name" 2>/dev/null && [ -e pid ] || exit 0
    pid=$(cat pid)
    kill "$pid" 2>/dev/null
    tail --pid="$pid" -f /dev/null
    if grep -q :/etc/neutron.conf.d: volumes; then umount /etc/neutron.conf.d; fi
    rm -f pid ;;
"wait "*)
    [ -e "$here/containers/$name/pid" ] || exit 0
    exec tail --pid="$(cat "$here/containers/$name/pid")" -f /dev/null ;;
"exec "*)
    [ "$2" = --interactive ] && shift
    kill -0 "$(cat "$here/containers/$2/pid")" || exit 1
    shift 2
    exec "$@" ;;
"container exists") [ -d "$here/containers/$3" ] ;;
"container inspect")
    cd "$here/containers/$5" 2>/dev/null || exit 125
    [ -e pid ] && kill -0 "$(cat pid)" 2>/dev/null && running=true || running=false
    case $4 in
    *Running*Image*) echo "$running $(cat image)" ;;
    *Running*identity*) echo "$running $(cat identity)" ;;
    *Running*) echo "$running" ;;
    *) echo "$(cat identity) $(cat image)" ;;
    esac ;;
*) exit 1 ;;
esac
"""

PROGRAMS = {
    "systemctl": SYSTEMCTL,
    "start-openvswitch": OPENVSWITCH,
    "podman": PODMAN,
    # Everything is installed.
    "dpkg-query": "#!/bin/bash\nfor it in \"${@:4}\"; do echo \"$it ii \"; done\n",
    "systemd-tmpfiles": "#!/bin/bash\nsed -nE 's/^d ([^ ]+) .*/\\1/p' \"$2\" | xargs mkdir -p\n",
}
TOOLS = {
    "ovsdb-server": "usr/sbin", "ovsdb-tool": "usr/bin", "ovs-vsctl": "usr/bin", "ovs-ofctl": "usr/bin",
    "ovs-vswitchd": "usr/lib/openvswitch-switch", "ovn-controller": "usr/bin", "ovn-appctl": "usr/bin", "ovn-sbctl": "usr/bin",
}


class OvnHost(TemporaryDirectoryTest):
    """A test on such a host, whose daemons end with it."""

    def setUp(self):
        super().setUp()
        for name, text in PROGRAMS.items():
            self.program(name, text)
        [libraries] = OVN.glob("usr/lib/*-linux-gnu")
        for name, folder in TOOLS.items():
            self.program(name, f"#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {OVN}/{folder}/{name} \"$@\"\n")
        (self.directory / "bin" / "units").mkdir()
        self.write("hosts", "a ansible_connection=local ansible_become=false canonical_hostname=a.example\n")
        holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "bash", "-c", START, self.directory / "root"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        )
        self.addCleanup(self.end, holder)
        while not (self.directory / "root" / "started").exists():
            self.assertIsNone(holder.poll(), "the namespaces of the host cannot be made")
        [self.init] = pathlib.Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()

    @staticmethod
    def end(holder):
        """Ends everything in the namespaces of the host."""
        holder.send_signal(signal.SIGKILL)
        holder.stdin.close()
        holder.wait()

    def program(self, name, text):
        """Puts a program before those of this machine."""
        path = self.write(f"bin/{name}", "")
        path.write_text(text)
        path.chmod(0o755)

    def host(self, path):
        """A file of the host, wherever it really is."""
        return self.directory / "root" / path.lstrip("/")

    def run_there(self, *words, env=None):
        """Runs a command on the host."""
        return self.command(
            "nsenter", "--target", self.init, "--net", "--mount", "--pid", f"--wd={self.directory}", *words,
            env={"PATH": f"{self.directory}/bin:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin", "OVN_ROOT": str(OVN), **(env or {})},
        )

    def ask(self, *words):
        """What a command on the host prints."""
        done = self.run_there(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.strip()

    def start_southbound(self, certificates=None, port=6642):
        """Starts the database, with TLS where there are certificates in this folder."""
        if not (self.directory / "sb.db").exists():
            self.ask("ovsdb-tool", "create", self.directory / "sb.db", OVN / "usr/share/ovn/ovn-sb.ovsschema")
        tls = [] if certificates is None else [
            f"--private-key={certificates}/tls.key", f"--certificate={certificates}/tls.crt", f"--ca-cert={certificates}/ca.crt",
        ]
        self.ask("mkdir", "-p", "/run/ovn")
        self.ask(
            "ovsdb-server", self.directory / "sb.db", f"--remote={'pssl' if tls else 'ptcp'}:{port}:127.0.0.1",
            "--remote=punix:/run/ovn/ovnsb_db.sock", "--pidfile=/run/ovn/sb.pid", "--unixctl=/run/ovn/sb.ctl", "--detach",
            "--no-chdir", f"--log-file={self.directory}/sb.log", *tls,
        )
        if not self.sbctl("list", "SB_Global"):
            self.sbctl("init")

    def stop_southbound(self):
        """Ends the database and awaits its end."""
        self.ask("bash", "-c", "pid=$(cat /run/ovn/sb.pid); kill $pid; tail --pid=$pid -f /dev/null")

    def sbctl(self, *words):
        """Asks the database directly."""
        return self.ask("ovn-sbctl", "--db=unix:/run/ovn/ovnsb_db.sock", "--bare", "--no-headings", *words)

    def ansible(self, playbook, *options, hosts="a", **given):
        """Runs a playbook on the host."""
        given = {
            "edpm_ovn_controller_agent_image": IMAGE,
            "edpm_ovn_config_src": f"{self.directory}/src/ovn",
            "edpm_ovn_datapath_type": "netdev",
            "tenant_ip": ADDRESS,
            "deploy_edpm_openstack_run_firewall": False,
            **given,
        }
        return self.run_there(
            BIN / "ansible-playbook", "-i", "hosts", "-e", json.dumps(given), *options, playbook,
            env={
                "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
                "ANSIBLE_CALLBACK_PLUGINS": CALLBACKS,
                "ANSIBLE_VARS_PLUGINS": str(ANSIBLE / "callback"),
                "EDPM_RUN_HOSTS": hosts,
                "EDPM_RESULT_FILE": str(self.directory / "result"),
            },
        )

    def deployed(self, playbook="osp.edpm.ovn", **given):
        """Runs a playbook, which must succeed; how many tasks changed something."""
        done = self.ansible(playbook, **given)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.said = done.stdout
        return json.loads((self.directory / "result").read_text())["changed"][0]

    def refused(self, playbook="osp.edpm.ovn", **given):
        """Runs a playbook, which must fail; what it said, in one line."""
        done = self.ansible(playbook, **given)
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        return " ".join((done.stdout + done.stderr).split())

    def refusals(self, cases, playbook="osp.edpm.ovn", **common):
        """Runs a playbook for hosts with these variables, each of which must be refused; what was said of each."""
        common = {"ansible_connection": "local", "ansible_become": False, "canonical_hostname": "a.example", **common}
        self.write("cases.json", json.dumps({"all": {"hosts": {name: {**common, **given} for name, given in cases.items()}}}))
        done = self.run_there(
            BIN / "ansible-playbook", "-i", "cases.json", "-e", '{"edpm_any_errors_fatal": false}', playbook,
            env={"ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory)},
        )
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("changed: [", done.stdout)
        said = dict.fromkeys(cases, "")
        for name, text in re.findall(r"(?m)^(?:fatal|failed): \[(\w+)\](.*)", done.stdout):
            said[name] += text
        return said

    def audit(self, playbook, **given):
        """What an audit reports of the host."""
        self.assertEqual(self.deployed(playbook, **given), 0)
        report = json.loads(json.loads((self.directory / "result").read_text())["report"])
        return report["audit"].get("a", [0, []])[1]

    def pid(self, container):
        """The process of a container."""
        return (self.directory / "bin" / "containers" / container / "pid").read_text()
