# Sets of machines as our controller looks after them, against a real Ironic.
"""The API server's part is in memory; what Ironic says, refuses and fails at is its own."""

import json
import threading
import unittest

from support import Ironic, condition, deleted, edited

HOSTS = {
    "compute-0": {"ctlPlaneIP": "192.0.2.10/24"},
    "compute-1": {"ctlPlaneIP": "192.0.2.11/24"},
}
ONE = {"compute-0": HOSTS["compute-0"]}
READY = {"Ready": "Ready"}
# The network of a ramdisk, but for what is added: an MTU and services.
NETWORK = {
    "links": [{"id": "nic", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:cc"}],
    "networks": [
        {
            "id": "ctlplane",
            "network_id": "ctlplane",
            "link": "nic",
            "type": "ipv4",
            "ip_address": "192.0.2.200",
            "netmask": "255.255.255.0",
        }
    ],
}
AVAILABLE = [("manage", "manageable"), ("provide", "available")]


def setUpModule():
    """Both start at the same time."""
    global ironic, failing, forgetful
    ironic, failing = Ironic(), Ironic(object_store=True)
    # It looks at the power of its machines each second, and forgets then what went wrong with them.
    forgetful = Ironic(object_store=True, more="\n[conductor]\nsync_power_state_interval = 1\n")
    for it in (ironic, failing, forgetful):
        unittest.addModuleCleanup(it.stop)
    for it in (ironic, failing, forgetful):
        it.started()


def verbs(answer, host):
    """What was asked for a host, without writes to the machine's description."""
    asked = [it.split(" ", 1) for it in answer["asked"]]
    return [what for of, what in asked if of == host and what != "patch"]


class WayAndBack(unittest.TestCase):
    """Machines become hosts, and machines again."""

    def test_two_hosts_are_provisioned_then_one_goes_then_the_set(self):
        name, first = ironic.enroll()
        _, second = ironic.enroll(resource_class=name)
        answer = ironic.follow(ironic.a_set("two", name, HOSTS, provide=True), READY)
        the_set = answer["set"]
        for host in HOSTS:
            self.assertEqual(verbs(answer, host)[:3], ["manage", "provide", "active"], answer["asked"])
            self.assertEqual(verbs(answer, host).count("active"), 1)
            entry = the_set["status"]["baremetalHosts"][host]
            node = ironic.api("GET", f"/v1/nodes/{entry['bmhRef']}")
            self.assertEqual((node["provision_state"], node["power_state"]), ("active", "power on"))
            self.assertEqual(node["instance_uuid"], entry["instance"].split("@")[0])
            drive = ironic.stored(entry["bmhRef"])["configdrive"]
            self.assertEqual(drive["meta_data"]["hostname"], f"{host}.example.org")
            self.assertEqual(f"{drive['network_data']['networks'][0]['ip_address']}/24", HOSTS[host]["ctlPlaneIP"])
            self.assertNotIn("ssh-ed25519", str(the_set["status"]))
        again = ironic.follow(the_set, READY)
        self.assertEqual((again["asked"], again["writes"]), ([], 0))

        given_back = the_set["status"]["baremetalHosts"]["compute-1"]["bmhRef"]
        fewer = ironic.follow(edited(the_set, baremetalHosts=ONE), READY)
        self.assertEqual(fewer["asked"], ["compute-1 deleted"])
        self.assertEqual(list(fewer["set"]["status"]["baremetalHosts"]), ["compute-0"])
        ironic.until(given_back, "available")
        self.assertIsNone(ironic.api("GET", f"/v1/nodes/{given_back}")["instance_uuid"])

        gone = ironic.follow(deleted(fewer["set"]))
        self.assertIsNone(gone["set"])
        for uuid in (first, second):
            ironic.until(uuid, "available")

    def test_wherever_the_operator_dies_each_machine_is_deployed_once(self):
        name, uuid = ironic.enroll()
        the_set = ironic.a_set("dying", name, ONE, provide=True)
        answer = ironic.follow(the_set, READY, deaths=[0, 2, 3, 4, 6, 7])
        self.assertEqual(verbs(answer, "compute-0").count("active"), 1, answer["asked"])
        self.assertEqual(answer["set"]["status"]["baremetalHosts"]["compute-0"]["bmhRef"], uuid)
        self.assertEqual(ironic.api("GET", f"/v1/nodes/{uuid}")["instance_info"]["edpm"]["attempt"], 1)

    def test_a_machine_that_is_undeployed_by_hand_is_deployed_again_as_another_instance(self):
        name, uuid = ironic.enroll()
        first = ironic.follow(ironic.a_set("again", name, ONE, provide=True), READY)["set"]
        before = first["status"]["baremetalHosts"]["compute-0"]
        ironic.reach(uuid, ("deleted", "available"))
        answer = ironic.follow(edited(first), READY)
        self.assertEqual(verbs(answer, "compute-0").count("active"), 1, answer["asked"])
        after = answer["set"]["status"]["baremetalHosts"]["compute-0"]
        self.assertEqual((after["bmhRef"], after["provisioningState"]), (uuid, "active"))
        self.assertNotEqual(after["instance"], before["instance"])
        self.assertEqual(after["instance"].split("@")[0], before["instance"].split("@")[0])

    def test_a_machine_that_runs_is_adopted_and_retained(self):
        name, uuid = ironic.enroll()
        ironic.reach(uuid, AVAILABLE[0])
        hosts = {"compute-0": ONE["compute-0"] | {"adopt": True, "machine": {"node": name}}}
        answer = ironic.follow(ironic.a_set("adopting", name, hosts), READY)
        self.assertEqual(verbs(answer, "compute-0")[0], "adopt")
        self.assertIsNone(ironic.follow(deleted(answer["set"]))["set"])
        node = ironic.api("GET", f"/v1/nodes/{uuid}")
        self.assertEqual((node["provision_state"], node["instance_uuid"]), ("active", None))

    def test_another_user_data_is_told_and_nothing_is_asked(self):
        name, uuid = ironic.enroll()
        the_set = ironic.follow(ironic.a_set("changing", name, ONE, provide=True), READY)["set"]
        own = {"own": {"userData": "#cloud-config\npackages: [vim]"}}
        changed = edited(the_set, userData={"name": "own"})
        answer = ironic.follow(changed, {"UpToDate": "ConfigDriveChanged"}, secrets=own)
        self.assertEqual(answer["asked"], [])
        self.assertEqual(condition(answer["set"])["status"], "True")


class Deploying(unittest.TestCase):
    """What a deployment needs stands on the machine before it, and goes with the host."""

    def test_a_ramdisk_has_its_network_until_the_machine_is_clean_wherever_the_operator_dies(self):
        name, uuid = ironic.enroll(extra={"rack": "r1"})
        hosts = {"compute-0": ONE["compute-0"] | {"preprovisioningNetworkDataName": "ramdisk"}}
        secrets = {"ramdisk": {"networkData": json.dumps(NETWORK)}}
        the_set = ironic.a_set("ramdisks", name, hosts, provide=True)
        answer = ironic.follow(the_set, READY, secrets=secrets, deaths=[0, 2, 3, 4, 6])
        self.assertEqual(verbs(answer, "compute-0").count("active"), 1, answer["asked"])
        network = ironic.api("GET", f"/v1/nodes/{uuid}")["network_data"]
        link = NETWORK["links"][0] | {"mtu": 1500}
        self.assertEqual(network, NETWORK | {"links": [link], "services": []})

        gone = ironic.follow(deleted(answer["set"]), secrets=secrets, deaths=[1, 3])
        self.assertIsNone(gone["set"])
        self.assertEqual(gone["asked"], [f"compute-0 {it}" for it in ("deleted", "patch", "patch")])
        node = ironic.api("GET", f"/v1/nodes/{uuid}")
        self.assertEqual((node["provision_state"], node["instance_uuid"]), ("available", None))
        self.assertFalse(node["network_data"])
        self.assertEqual((node["extra"], node["instance_info"]), ({"rack": "r1"}, {}))

    def test_network_data_that_ironic_refuses_is_told_in_its_words_and_nothing_is_reserved(self):
        name, uuid = ironic.enroll()
        hosts = {"compute-0": ONE["compute-0"] | {"preprovisioningNetworkDataName": "ramdisk"}}
        secrets = {"ramdisk": {"networkData": json.dumps(NETWORK | {"links": [{"id": "nic"}]})}}
        the_set = ironic.a_set("refused", name, hosts, provide=True)
        answer = ironic.follow(the_set, {"Ready": "RequestRefused"}, secrets=secrets)
        self.assertIn("network_data", condition(answer["set"])["message"])
        self.assertIsNone(ironic.api("GET", f"/v1/nodes/{uuid}")["instance_uuid"])

    def test_image_and_disk_are_told_and_nothing_else_of_the_machine_is_changed(self):
        given = {
            "driver_info": {"deploy_kernel": "http://192.0.2.1/kernel"},
            "properties": {"cpu_arch": "x86_64", "root_device": {"wwn": "0x1"}},
        }
        name, uuid = ironic.enroll(**given)
        image = {"source": "http://192.0.2.1/edpm.qcow2", "checksum": "http://192.0.2.1/SHA256SUMS"}
        disk = {"serial": "S1", "name": "s== /dev/vda"}
        the_set = ironic.a_set("imaged", name, ONE, provide=True, image=image, rootDevice=disk)
        the_set = ironic.follow(the_set, READY)["set"]
        node = ironic.api("GET", f"/v1/nodes/{uuid}")
        info = node["instance_info"]
        self.assertEqual((info["image_source"], info["image_checksum"]), tuple(image.values()))
        self.assertEqual(info["root_device"], disk)
        self.assertEqual({key: node[key] for key in given}, given)
        self.assertIsNone(ironic.follow(deleted(the_set))["set"])
        ironic.until(uuid, "available")

        hashed = image | {"checksum": "0f" * 32}
        again = ironic.a_set("hashed", name, ONE, image=hashed)
        ironic.follow(again, READY)
        info = ironic.api("GET", f"/v1/nodes/{uuid}")["instance_info"]
        self.assertEqual((info["image_os_hash_algo"], info["image_os_hash_value"]), ("sha256", "0f" * 32))
        self.assertNotIn("image_checksum", info)
        self.assertNotIn("root_device", info)


class Failing(unittest.TestCase):
    """What goes wrong, with Ironic's own words."""

    def test_a_deployment_that_fails_is_tried_as_often_as_allowed_and_told(self):
        name, uuid = failing.enroll()
        failing.reach(uuid, *AVAILABLE)
        the_set = failing.a_set("failing", name, ONE, deployAttempts=2)
        answer = failing.follow(the_set, {"Ready": "DeployFailed"}, ahead=7200)
        self.assertEqual(verbs(answer, "compute-0"), ["active", "active"], answer["asked"])
        error = failing.api("GET", f"/v1/nodes/{uuid}")["last_error"].strip()
        told = condition(answer["set"])
        self.assertIn(error[:200], told["message"])
        self.assertIn(f"openstack baremetal node undeploy {name}", told["message"])
        self.assertIn(error[:200], answer["set"]["status"]["baremetalHosts"]["compute-0"]["error"])
        self.assertEqual(answer["events"].count("DeployFailed"), 1, answer["events"])
        self.assertEqual(condition(answer["set"], "Stalled")["status"], "True")
        self.assertIsNone(failing.follow(deleted(answer["set"]))["set"])

    def test_what_ironic_has_forgotten_is_read_from_the_history(self):
        name, uuid = forgetful.enroll()
        forgetful.reach(uuid, *AVAILABLE)
        the_set = forgetful.a_set("forgetful", name, ONE, deployAttempts=1)
        failed = forgetful.follow(the_set, {"Ready": "DeployFailed"})["set"]
        forgetful.until(uuid, None, field="last_error")
        # As if no pass had come while Ironic still said it.
        failed["status"]["baremetalHosts"]["compute-0"].pop("failure", None)
        failed["status"]["conditions"] = []
        told = forgetful.follow(failed, {"Ready": "DeployFailed"})["set"]
        self.assertIn("Failed to prepare the configdrive", condition(told)["message"])
        self.assertIsNone(forgetful.follow(deleted(told))["set"])

    def test_a_cleaning_that_fails_is_told(self):
        name, _ = failing.enroll(deploy_interface="ramdisk")
        the_set = failing.a_set("cleaning", name, ONE, provide=True)
        answer = failing.follow(the_set, {"Ready": "CleanFailed"})
        self.assertIn("openstack baremetal node manage", condition(answer["set"])["message"])

    def test_a_machine_in_maintenance_is_told_and_goes_on_afterwards(self):
        name, uuid = ironic.enroll()
        the_set = ironic.a_set("mending", name, ONE)
        waiting = ironic.follow(the_set, {"Ready": "NoMachine"})["set"]
        self.assertIn("1 in state enroll", condition(waiting)["message"])
        ironic.reach(uuid, *AVAILABLE)
        ironic.api("PUT", f"/v1/nodes/{uuid}/maintenance", {"reason": "disk 3 is broken"})
        answer = ironic.follow(edited(waiting), {"Ready": "NoMachine"})
        self.assertIn("1 in maintenance", condition(answer["set"])["message"])
        ironic.api("DELETE", f"/v1/nodes/{uuid}/maintenance")
        self.assertEqual(verbs(ironic.follow(answer["set"], READY), "compute-0")[0], "active")

    def test_a_requirement_that_nothing_meets_is_counted_and_the_other_host_goes_on(self):
        name, uuid = ironic.enroll()
        hosts = {
            "compute-0": {"ctlPlaneIP": "192.0.2.10/24"},
            "compute-1": {"ctlPlaneIP": "192.0.2.11/24", "machine": {"traits": ["CUSTOM_GPU"]}},
        }
        the_set = ironic.a_set("wanting", name, hosts, provide=True)
        answer = ironic.follow(the_set, {"Ready": "NoMachine"})
        self.assertRegex(condition(answer["set"])["message"], "1 without trait CUSTOM_GPU")
        provisioned = {"OpenStackBaremetalSetBmhProvisioningReady": "1 of 2 hosts have a machine that runs."}
        answer = ironic.follow(answer["set"], provisioned)
        self.assertEqual(answer["set"]["status"]["baremetalHosts"]["compute-0"]["bmhRef"], uuid)

    def test_wrong_and_missing_credentials_are_told(self):
        the_set = ironic.a_set("strange", "none", ONE)
        wrong = {"ironic": {"username": "operator", "password": "hunter2"}}
        answer = ironic.follow(the_set, {"Ready": "CredentialsRefused"}, secrets=wrong)
        self.assertNotIn("hunter2", str(answer))
        lacking = {"ironic": {"username": "operator"}}
        answer = ironic.follow(the_set, {"Ready": "CredentialsIncomplete"}, secrets=lacking)
        self.assertIn("key password of Secret ironic", condition(answer["set"])["message"])

    def test_an_ironic_that_is_away_is_told(self):
        the_set = ironic.a_set("away", "none", ONE, endpoint="http://127.0.0.1:9")
        ironic.follow(the_set, {"Ready": "Unreachable"})

    def test_two_sets_never_take_one_machine(self):
        name, uuid = ironic.enroll()
        ironic.reach(uuid, *AVAILABLE)
        ends = []

        def follow(it):
            answer = ironic.follow(ironic.a_set(f"race-{it}", name, ONE), {"Ready": "Ready|NoMachine"})
            ends.append(condition(answer["set"])["reason"])

        racing = [threading.Thread(target=follow, args=(it,)) for it in range(3)]
        for it in racing:
            it.start()
        for it in racing:
            it.join()
        self.assertEqual(sorted(ends), ["NoMachine", "NoMachine", "Ready"])

    def test_a_machine_that_is_deleted_while_it_runs_is_not_replaced(self):
        name, uuid = ironic.enroll()
        _, other = ironic.enroll(resource_class=name)
        the_set = ironic.follow(ironic.a_set("losing", name, ONE, provide=True), READY)["set"]
        lost = the_set["status"]["baremetalHosts"]["compute-0"]["bmhRef"]
        ironic.api("PUT", f"/v1/nodes/{lost}/maintenance", {"reason": "burnt"})
        ironic.api("DELETE", f"/v1/nodes/{lost}")
        answer = ironic.follow(the_set, {"Ready": "MachineGone"})
        self.assertEqual(answer["asked"], [])
        self.assertIn(lost, condition(answer["set"])["message"])
        left = other if lost == uuid else uuid
        self.assertEqual(ironic.api("GET", f"/v1/nodes/{left}")["instance_uuid"], None)
