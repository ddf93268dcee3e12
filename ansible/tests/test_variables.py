"""The check of variables at the begin of each playbook: what no role reads, and what a role cannot take, changes no host."""

import json
import re
import unittest

import yaml
from support import BIN, COLLECTION, TemporaryDirectoryTest, collections_path

# What upstream's samples and the operators set for all services.
UPSTREAM = {
    "edpm_bootstrap_command": "true",
    "edpm_facts": {},
    "edpm_frr_bgp_uplinks": ["nic3"],
    "edpm_logrotate_crond_image": "quay.io/x/cron:1",
    "edpm_neutron_metadata_agent_DEFAULT_debug": "True",
    "edpm_neutron_metadata_agent_image": "quay.io/x/neutron:1",
    "edpm_nodes_validation_validate_controllers_icmp": False,
    "edpm_nodes_validation_validate_gateway_icmp": False,
    "edpm_network_config_hide_sensitive_logs": False,
    "edpm_nova_compute_image": "quay.io/x/nova:1",
    "edpm_nodeset_name": "edpm",
    "edpm_ovn_bgp_agent_exposing_method": "ovn",
    "edpm_ovn_bgp_agent_image": "quay.io/x/bgp:1",
    "edpm_ovn_bgp_agent_local_ovn_controller_image": "quay.io/x/ovn:1",
    "edpm_ovn_bridge_mappings": ["datacentre:br-ex"],
    "edpm_ssh_args": "-o A=b",
    "edpm_selinux_mode": "enforcing",
    "edpm_service_type": "install-os",
    "edpm_services": ["install-os"],
    "edpm_sshd_allowed_ranges": ["192.168.122.0/24"],
    "edpm_sshd_configure_firewall": True,
    "edpm_telemetry_node_exporter_image": "quay.io/x/exporter:1",
    "edpm_tls_certs_enabled": True,
    "edpm_tuned_profile": "cpu-partitioning",
    "edpm_ovs_image_download_delay": 5,
    "gather_facts": False,
    "timesync_ntp_servers": [{"hostname": "pool.example"}],
}

FAULTY = {
    # Misspelled, also before the name of the role ends; upstream's that is not carried out.
    "edpm_nftables_rules": "edpm_nftables_rules is read by no role of osp.edpm: did you mean edpm_nftables_user_rules?",
    "edpm_nftable_user_rules": "edpm_nftable_user_rules is read by no role of osp.edpm: did you mean edpm_nftables_user_rules?",
    "deploy_edpm_openstack_run_firewal": "did you mean deploy_edpm_openstack_run_firewall?",
    "edpm_users_extra_dirs": "edpm_users_extra_dirs is read by no role of osp.edpm: remove it",
    # No names of variables of Ansible, or others to it.
    "edpm-sshd-allowed-ranges": "edpm-sshd-allowed-ranges is read by no role of osp.edpm: did you mean edpm_sshd_allowed_ranges?",
    "EDPM_timezone": "EDPM_timezone is read by no role of osp.edpm: did you mean edpm_timezone?",
    "ansiblePort": "ansiblePort is a field and no variable: write it beside ansibleVars, not into it.",
}

MISSHAPEN = {
    # What Ansible itself would make a list of, where it is the argument of a module.
    "edpm_chrony_ntp_servers": ("a,b", "edpm_chrony_ntp_servers must be a list, not text."),
    "edpm_container_registry_logins": ("registry: {user: secret-of-mine}", "edpm_container_registry_logins must be a dictionary"),
    "edpm_nova_extra_bind_mounts": ([{"src": "/a", "dest": "/b", "option": "ro"}], "unknown key edpm_nova_extra_bind_mounts.option"),
    "edpm_nftables_backend": ("nf", "must be one of: auto, nft, iptables-nft, iptables-legacy, got: nf"),
    "edpm_ovn_firewall_rules": ([{"rule_name": "119", "rule": {"proto": "udp", "dport": ["geneve"]}}], "dport must be numbers of ports"),
    "edpm_reboot_drained": ("maybe", "edpm_reboot_drained"),
    "edpm_sshd_allowed_ranges": (["here"], "source must be addresses or networks"),
    "edpm_sshd_configure_firewall": (False, "edpm_sshd_configure_firewall"),
}


def specs(role="*"):
    """The declared variables by name."""
    found = {}
    for path in COLLECTION.glob(f"roles/{role}/meta/argument_specs.yml"):
        found.update(yaml.safe_load(path.read_text())["argument_specs"]["main"]["options"])
    return found


class Variables(TemporaryDirectoryTest):
    def check(self, variables, tag="!unsafe"):
        """Runs the check with these variables, whose texts carry a tag in the inventory; its exit code and what it said."""
        class Tagged(str):
            """A text that the inventory marks as one that is no template."""

        class Dumper(yaml.SafeDumper):
            """Writes these marks."""

        Dumper.add_representer(Tagged, lambda dumper, text: dumper.represent_scalar(tag, str(text), style='"'))

        def tagged(value):
            if isinstance(value, dict):
                return {key: tagged(it) for key, it in value.items()}
            if isinstance(value, list):
                return [tagged(it) for it in value]
            return Tagged(value) if tag and isinstance(value, str) else value

        self.write("hosts.yml", yaml.dump({"edpm": {"hosts": {"a": {"ansible_connection": "local"}}, "vars": tagged(variables)}},
                                          Dumper=Dumper))
        self.write("play.yml", """
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.import_role: {name: osp.edpm.edpm_variables, tasks_from: check}
            """)
        done = self.command(
            BIN / "ansible-playbook", "-i", "hosts.yml", "play.yml",
            env={"ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory)},
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def test_what_upstreams_samples_set_is_accepted(self):
        code, said = self.check(UPSTREAM)
        self.assertEqual(code, 0, said)

    def test_what_no_role_reads_and_what_a_role_cannot_take_is_refused_by_name_in_one_go(self):
        given = {**dict.fromkeys(FAULTY, "x"), **{name: value for name, (value, _) in MISSHAPEN.items()}}
        words = [*FAULTY.values(), *(text for _, text in MISSHAPEN.values())]
        said = ""
        for tag in ("!unsafe", None):
            code, answer = self.check(given, tag)
            self.assertNotEqual(code, 0)
            said += answer
        # A message has room for eight of them.
        self.assertIn("…", said)
        half = dict(list(given.items())[len(FAULTY):])
        said += self.check(half)[1]
        for text in words:
            self.assertIn(text, said)
        self.assertNotIn("secret-of-mine", said)

    def test_a_variable_that_a_later_task_defines_is_not_judged(self):
        code, said = self.check({"edpm_timezone": "{{ found.stdout }}", "edpm_reboot_drained": "{{ found.stdout }}"}, None)
        self.assertEqual(code, 0, said)


class Declarations(unittest.TestCase):
    def test_every_playbook_that_changes_hosts_begins_with_the_check_whichever_of_its_tags_are_given(self):
        for path in sorted((COLLECTION / "playbooks").glob("*.yml")):
            [play] = yaml.safe_load(path.read_text())
            if path.stem.endswith("_audit"):
                continue
            with self.subTest(path.stem):
                first, *others = play["tasks"]
                self.assertEqual(first["ansible.builtin.import_role"], {"name": "osp.edpm.edpm_variables", "tasks_from": "check"})
                self.assertEqual(set(first["tags"]), {tag for task in others for tag in task["tags"]})

    def test_every_plain_default_and_every_documented_variable_is_declared(self):
        declared, plain = set(specs()), set()
        for path in COLLECTION.glob("roles/*/defaults/main.yml"):
            # Texts of files are the roles', and what has templates is mostly made of other variables.
            for name, value in yaml.safe_load(path.read_text()).items():
                if "{{" not in json.dumps(value) and not str(value).startswith("# Written by"):
                    plain.add(name)
        documented = set(re.findall(r"^\| (`[^|]+`) \|", (COLLECTION / "README.md").read_text(), re.MULTILINE))
        documented = {name for cell in documented for name in re.findall(r"`((?:deploy_)?edpm_\w+)`", cell)}
        self.assertGreater(len(documented), 40)
        self.assertEqual((plain | documented) - declared - GIVEN_BY_ROLES, set())

    def test_every_declared_variable_is_read_unless_it_is_upstreams_without_an_effect(self):
        texts = [path.read_text() for path in COLLECTION.rglob("*")
                 if path.suffix in (".yml", ".j2") and path.name != "argument_specs.yml"]
        for name, option in specs().items():
            with self.subTest(name):
                is_read = any(re.search(rf"\b{name}\b", text) for text in texts)
                self.assertEqual(is_read, not option["description"].startswith("Upstream's"))


# What one role gives to another, and no user: the defaults of the role that runs containers.
GIVEN_BY_ROLES = {
    "edpm_container_command", "edpm_container_force", "edpm_container_restart", "edpm_container_has_guests",
    "edpm_container_after", "edpm_container_stop_timeout", "edpm_container_hint",
}

if __name__ == "__main__":
    unittest.main()
