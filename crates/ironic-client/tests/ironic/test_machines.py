# Machines of a real Ironic: their way into service and back, and what may go wrong on it.
"""Fake hardware does at once what real hardware does in minutes; states, locks and refusals are Ironic's own."""

import base64
import gzip
import unittest

from support import Ironic, bring, release

AVAILABLE = [("manage", "manageable"), ("provide", "available")]


def setUpModule():
    """Both start at the same time."""
    global ironic, failing
    ironic, failing = Ironic(), Ironic(object_store=True)
    for it in (ironic, failing):
        unittest.addModuleCleanup(it.stop)
    for it in (ironic, failing):
        it.started()


class Asking(unittest.TestCase):
    """Who asks, and how."""

    def test_the_version_is_negotiated(self):
        self.assertEqual(ironic.ask("version"), {"version": "1.78"})

    def test_each_version_that_is_spoken_knows_the_fields_that_it_is_asked_for(self):
        for version in ("1.46", "1.60", "1.61", "1.66", "1.78"):
            fields = ironic.ask({"fields": version})
            self.assertIn("nodes", ironic.api("GET", f"/v1/nodes?fields={fields}", version=version))

    def test_wrong_and_missing_credentials_are_told(self):
        wrong = {"username": "operator", "password": "wrong"}
        self.assertEqual(ironic.ask("list", secret=wrong)["error"], "CredentialsRefused")
        self.assertEqual(ironic.ask("list", authentication="none", secret={})["error"], "CredentialsRefused")

    def test_an_ironic_that_is_away_is_told(self):
        self.assertEqual(ironic.ask("list", endpoint="http://127.0.0.1:9")["error"], "Unreachable")

    def test_a_refusal_has_ironics_own_words(self):
        answer = ironic.ask({"enroll": {"driver": "of-nobody"}})
        self.assertEqual(answer["error"], "RequestRefused")
        self.assertIn("of-nobody", answer["message"])


class WayAndBack(unittest.TestCase):
    """A machine becomes a host, and a machine again."""

    def test_a_machine_that_is_only_enrolled_is_provided_deployed_and_given_back(self):
        name, uuid = ironic.enroll()
        answer = ironic.ask(bring(name, provide=True))
        self.assertEqual(answer["end"], "Done", answer)
        self.assertEqual(answer["node"], uuid)
        self.assertEqual(answer["steps"][:4], ["reserve", "manage", "provide", "deploy"], answer)
        node = ironic.api("GET", f"/v1/nodes/{uuid}")
        self.assertEqual((node["provision_state"], node["power_state"]), ("active", "power on"))
        self.assertEqual(node["instance_uuid"], answer["instance"])
        self.assertEqual(node["instance_info"]["configdrive"], "******")
        drive = ironic.stored(uuid)["configdrive"]
        self.assertEqual(drive["meta_data"]["uuid"], answer["instance"])
        self.assertIn("cloud-admin", drive["user_data"])
        self.assertEqual(drive["network_data"]["links"][0]["mtu"], 1500)
        self.assertEqual(ironic.ask(bring(name, provide=True))["steps"], [])
        self.assertEqual(ironic.ask(release())["steps"], ["deleted"])
        ironic.until(uuid, "available")
        node = ironic.api("GET", f"/v1/nodes/{uuid}")
        self.assertEqual((node["instance_uuid"], node["instance_info"]), (None, {}))
        self.assertEqual(ironic.ask(release())["steps"], [])

    def test_a_drive_that_is_an_image_arrives_as_it_is(self):
        name, uuid = ironic.enroll()
        answer = ironic.ask(bring(name, "compute-iso", provide=True, format="Iso"))
        self.assertEqual(answer["end"], "Done", answer)
        image = gzip.decompress(base64.b64decode(ironic.stored(uuid)["configdrive"]))
        self.assertEqual(image[0x8001:0x8006], b"CD001")
        self.assertIn(b"config-2", image[0x8000:0x8800])

    def test_wherever_we_die_the_same_machine_is_deployed_once(self):
        name, uuid = ironic.enroll()
        task = bring(name, "compute-dies", provide=True)
        done = []
        for _ in range(5):
            task["bring"]["dies"] = 1
            answer = ironic.ask(task)
            done += answer["steps"]
            if answer["end"] == "Done":
                break
        del task["bring"]["dies"]
        answer = ironic.ask(task)
        self.assertEqual((answer["end"], answer["node"]), ("Done", uuid))
        done += answer["steps"]
        self.assertEqual(done.count("deploy"), 1, done)
        history = ironic.api("GET", f"/v1/nodes/{uuid}")["instance_info"]["edpm"]
        self.assertEqual(history["attempt"], 1)

    def test_a_machine_that_runs_is_adopted_and_retained(self):
        name, uuid = ironic.enroll()
        ironic.reach(uuid, AVAILABLE[0])
        answer = ironic.ask(bring(name, "compute-adopted", adopt=True))
        self.assertEqual(answer["end"], "Done", answer)
        self.assertEqual(answer["steps"][:2], ["reserve", "adopt"])
        self.assertEqual(ironic.ask(release("compute-adopted", retain=True))["steps"], ["unreserve"])
        node = ironic.api("GET", f"/v1/nodes/{uuid}")
        self.assertEqual((node["provision_state"], node["instance_uuid"]), ("active", None))

    def test_a_machine_that_was_reserved_and_not_deployed_is_given_up(self):
        name, uuid = ironic.enroll()
        answer = ironic.ask(bring(name, "compute-early", provide=True, dies=1))
        self.assertEqual(answer["steps"], ["reserve"])
        self.assertEqual(ironic.ask(release("compute-early"))["steps"], ["unreserve"])
        node = ironic.api("GET", f"/v1/nodes/{uuid}")
        self.assertEqual((node["instance_uuid"], node["instance_info"]), (None, {}))


class Choosing(unittest.TestCase):
    """Whose machine it is."""

    def test_two_sets_never_take_one_machine(self):
        name, uuid = ironic.enroll()
        ironic.reach(uuid, *AVAILABLE)
        asking = [ironic.asking(bring(name, "compute-0", f"race-{it}")) for it in range(4)]
        answers = [it() for it in asking]
        won = [it for it in answers if it["end"] == "Done"]
        self.assertEqual(len(won), 1, answers)
        for it in answers:
            if it not in won:
                self.assertEqual(it["end"], "NoMachine")
                self.assertRegex(it["message"], "1 reserved by others")

    def test_one_host_never_takes_two_machines(self):
        name, first = ironic.enroll()
        _, second = ironic.enroll(resource_class=name)
        for uuid in (first, second):
            ironic.reach(uuid, *AVAILABLE)
        task = bring(name, "compute-twice")
        answers = [it() for it in [ironic.asking(task) for _ in range(4)]]
        self.assertEqual([it["end"] for it in answers], ["Done"] * 4, answers)
        self.assertEqual(len({it["node"] for it in answers}), 1)
        owners = [ironic.api("GET", f"/v1/nodes/{it}")["instance_uuid"] for it in (first, second)]
        self.assertEqual(sorted(owners, key=str), sorted([answers[0]["instance"], None], key=str))

    def test_a_machine_of_an_allocation_is_reserved(self):
        name, uuid = ironic.enroll()
        ironic.reach(uuid, *AVAILABLE)
        # Allocations take no machine whose power was never told.
        ironic.api("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "power off"})
        ironic.until(uuid, "power off", "power_state")
        ironic.api("POST", "/v1/allocations", {"name": name, "resource_class": name})
        ironic.until(name, "active", "state", "allocations")
        answer = ironic.ask(bring(name, "compute-allocated"))
        self.assertEqual(answer["end"], "NoMachine")
        self.assertIn("1 reserved by others", answer["message"])

    def test_a_requirement_that_nothing_meets_is_counted(self):
        name, _ = ironic.enroll()
        machine = {"resourceClass": name, "traits": ["CUSTOM_GPU"]}
        answer = ironic.ask(bring(name, "compute-gpu", machine=machine))
        self.assertEqual(answer["end"], "NoMachine")
        self.assertRegex(answer["message"], f"not of resource class {name}, 1 without trait CUSTOM_GPU")

    def test_traits_and_capabilities_and_extra_are_found(self):
        name, uuid = ironic.enroll(extra={"rack": "r1"}, properties={"capabilities": "boot_mode:uefi"})
        ironic.api("PUT", f"/v1/nodes/{uuid}/traits", {"traits": ["CUSTOM_EDPM"]})
        ironic.reach(uuid, *AVAILABLE)
        machine = {"traits": ["CUSTOM_EDPM"], "capabilities": {"boot_mode": "uefi"}, "extra": {"rack": "r1"}}
        answer = ironic.ask(bring(name, "compute-traits", machine=machine))
        self.assertEqual((answer["end"], answer["node"]), ("Done", uuid), answer)


class Failing(unittest.TestCase):
    """What goes wrong, in Ironic's own words."""

    def test_a_machine_in_maintenance_is_left_alone(self):
        name, uuid = ironic.enroll()
        ironic.reach(uuid, *AVAILABLE)
        self.assertEqual(ironic.ask(bring(name, "compute-m", dies=1))["steps"], ["reserve"])
        ironic.api("PUT", f"/v1/nodes/{uuid}/maintenance", {"reason": "disk 3 is broken"})
        answer = ironic.ask(bring(name, "compute-m"))
        self.assertEqual(answer["end"], "MachineInMaintenance")
        self.assertIn("disk 3 is broken", answer["message"])
        other = ironic.ask(bring(name, "compute-n"))
        self.assertIn("1 reserved by others", other["message"])
        ironic.api("DELETE", f"/v1/nodes/{uuid}/maintenance")
        self.assertEqual(ironic.ask(bring(name, "compute-m"))["end"], "Done")

    def test_a_deployment_that_fails_is_tried_as_often_as_allowed_and_told(self):
        name, uuid = failing.enroll()
        failing.reach(uuid, *AVAILABLE)
        answer = failing.ask(bring(name, ahead=7200))
        self.assertEqual(answer["end"], "DeployFailed", answer)
        self.assertEqual([it for it in answer["steps"] if it != "MachineBusy"],
                         ["reserve", "deploy", "record", "deploy"])
        error = failing.api("GET", f"/v1/nodes/{uuid}")["last_error"]
        self.assertIn(error.strip()[:60], answer["message"])
        self.assertEqual(failing.ask(bring(name, ahead=7200))["steps"], [])
        more = failing.ask(bring(name, ahead=7200, attempts=3))
        self.assertEqual([it for it in more["steps"] if it != "MachineBusy"], ["record", "deploy"])
        self.assertEqual(failing.ask(release())["steps"], ["deleted"])

    def test_a_cleaning_that_fails_is_told(self):
        name, _ = failing.enroll(deploy_interface="ramdisk")
        answer = failing.ask(bring(name, "compute-c", provide=True))
        self.assertEqual(answer["end"], "CleanFailed", answer)
        self.assertIn("`openstack baremetal node manage", answer["message"])
        self.assertEqual(failing.ask(release("compute-c"))["steps"], ["unreserve"])

    def test_a_machine_that_is_not_available_is_not_touched_unasked(self):
        name, uuid = ironic.enroll()
        answer = ironic.ask(bring(name, "compute-e"))
        self.assertEqual(answer["end"], "NoMachine")
        self.assertIn("1 in state enroll", answer["message"])
        self.assertEqual(ironic.api("GET", f"/v1/nodes/{uuid}")["instance_uuid"], None)

    def test_a_machine_that_is_deleted_behind_our_back_is_nobodys(self):
        name, uuid = ironic.enroll()
        self.assertEqual(ironic.ask(bring(name, "compute-d", provide=True, dies=1))["steps"], ["reserve"])
        # A reserved machine can be deleted in maintenance alone.
        self.assertEqual(ironic.ask({"forget": uuid})["error"], "MachineBusy")
        ironic.api("PUT", f"/v1/nodes/{uuid}/maintenance", {"reason": "burnt"})
        self.assertIsNone(ironic.ask({"forget": uuid}))
        self.assertEqual(ironic.ask(release("compute-d")), {"end": "Done", "steps": []})
        self.assertEqual(ironic.ask(bring(name, "compute-d"))["end"], "NoMachine")
