# Many machines at once, on a real Ironic.
"""What is asked goes through a proxy that counts; the controller's own pauses are made."""

import itertools
import os
import unittest

from counted import Counted
from support import Ironic, condition

# How many: Ironic over SQLite deploys a few at a time, so that 200 take long.
HOSTS = int(os.environ.get("EDPM_MACHINES", "30"))
# How many requests of a set are under way at most.
AT_ONCE = 8
# How old a list of machines is at most, in seconds; how many changed ones are read one by one instead.
LIST, ONE_BY_ONE = 2, 16
# The pause after an answer 503, and how long before it requests were decided at most, in seconds.
PAUSE, WINDOW = 15, 8
MANAGEABLE = ("manage", "manageable")


class Scale(unittest.TestCase):
    """A set of many hosts."""

    def test_many_machines_are_deployed_once_each_within_the_limits_of_ironic(self):
        ironic = Ironic()
        self.addCleanup(ironic.stop)
        name, machines = ironic.started().enroll_many(HOSTS, MANAGEABLE, ("provide", "available"))
        counted = Counted(ironic.endpoint)
        self.addCleanup(counted.stop)
        hosts = {f"compute-{it}": {"ctlPlaneIP": f"192.0.2.{it + 2}/24"} for it in range(HOSTS)}
        the_set = ironic.a_set("many", name, hosts, endpoint=counted.endpoint)
        answer = ironic.follow(the_set, {"Ready": "Ready"}, atItsPace=True)
        took, lists = counted.took(), counted.lists()
        reads = [it for it in counted.asked if it.method == "GET"]
        told = [it for it in counted.asked if it.method != "GET"]
        refused = [it for it in told if not it.is_done()]
        print(f"{HOSTS} machines in {took:.0f} s: {len(lists)} lists, {len(reads) - len(lists)} other reads, "
              f"{len(told)} changes of which {len(refused)} were refused, {counted.most} requests at once")
        self.assertEqual(condition(answer["set"])["status"], "True")

        once = dict.fromkeys(machines, 1)
        self.assertEqual(counted.of_machines(lambda it: it.reserves), once)
        self.assertEqual(counted.of_machines(lambda it: it.target == "active"), once)
        nodes = ironic.api("GET", "/v1/nodes?limit=1000&fields=uuid,provision_state,instance_uuid")["nodes"]
        active = [it for it in nodes if it["provision_state"] == "active"]
        self.assertEqual({it["uuid"] for it in active}, set(machines))
        self.assertEqual(len({it["instance_uuid"] for it in active}), HOSTS)

        self.assertLessEqual(counted.most, AT_ONCE)
        self.assertLessEqual(len(lists), took / LIST + 1)
        self.assertLessEqual(len(reads), 1 + len(lists) * (1 + ONE_BY_ONE))
        # A reservation, a deployment and power for each; what is refused is asked for again after a pause.
        self.assertLessEqual(len(told) - len(refused), 3 * HOSTS)
        self.assertEqual({it.status for it in refused} - {409, 503}, set())
        for machine in {it.machine for it in refused}:
            begun = [it.begun for it in refused if it.machine == machine]
            pauses = [later - sooner for sooner, later in itertools.pairwise(sorted(begun))]
            self.assertGreaterEqual(min(pauses, default=PAUSE), PAUSE - WINDOW)
