"""Sets the stage for the script of requests to a real nova: `nova_stage.py CELL STAGE`, see honest/nova.rs.

It writes records of two hosts on which nothing runs, and takes away all that it wrote.
"""

import datetime
import sys

from nova import config, context, objects, rpc
from nova.db.main import api as database
from nova.db.main import models
from nova.network import model
from nova.scheduler.client import report
from oslo_utils import timeutils, uuidutils
from sqlalchemy import inspect, text

HOSTS = ["honest-0", "honest-1"]
CONSUMER = "00000000-0000-4000-8000-00000000000a"
SHARE = {"VCPU": 1, "MEMORY_MB": 512}
OWNER = {"project_id": "00000000000040008000000000000001", "user_id": "00000000000040008000000000000001"}


def flavor(ctx):
    return objects.Flavor(
        ctx, flavorid="1", name="small", memory_mb=64, vcpus=1, root_gb=0, ephemeral_gb=0, swap=0,
        rxtx_factor=1.0, vcpu_weight=0, disabled=False, is_public=True, extra_specs={})


def placement(method, path, *body):
    """Asks placement, and fails where it does."""
    answer = getattr(report.report_client_singleton(), method)(path, *body, version="1.36")
    if not answer and not (method == "delete" and answer.status_code == 404):
        raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text}")
    return answer


def provide(uuid, name):
    placement("post", "/resource_providers", {"uuid": uuid, "name": name})
    total = {"total": 100000, "reserved": 0, "min_unit": 1, "max_unit": 1024, "step_size": 1, "allocation_ratio": 1.0}
    inventories = {"resource_provider_generation": 0, "inventories": dict.fromkeys(SHARE, total)}
    placement("put", f"/resource_providers/{uuid}/inventories", inventories)


def allocate(consumer, provider):
    shares = {"allocations": {provider: {"resources": SHARE}}, "consumer_generation": None}
    placement("put", f"/allocations/{consumer}", shares | OWNER)


def free(consumer):
    found = placement("get", f"/allocations/{consumer}").json()
    if found["allocations"]:
        found["allocations"] = {}
        placement("put", f"/allocations/{consumer}", found)


def hosts(ctx, cell):
    nothing(ctx, cell)
    for host in HOSTS:
        with context.target_cell(ctx, cell) as in_cell:
            reported = timeutils.utcnow() - datetime.timedelta(hours=HOSTS.index(host))
            service = objects.Service(
                in_cell, host=host, binary="nova-compute", topic="compute", report_count=1)
            service.create()
            service.last_seen_up = reported
            service.save()
            node = objects.ComputeNode(
                in_cell, service_id=service.id, host=host, hypervisor_hostname=host,
                uuid=uuidutils.generate_uuid(), vcpus=8, memory_mb=1024, local_gb=10, vcpus_used=0,
                memory_mb_used=0, local_gb_used=0, hypervisor_type="QEMU", hypervisor_version=7002000,
                cpu_info="{}", free_ram_mb=1024, free_disk_gb=10, current_workload=0, running_vms=0,
                mapped=1, host_ip="192.0.2.1", cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0,
                disk_allocation_ratio=1.0)
            node.create()
        objects.HostMapping(ctx, host=host, cell_mapping=cell).create()
        provide(node.uuid, host)


def unmapped(ctx, cell):
    objects.HostMapping.get_by_host(ctx, HOSTS[0]).destroy()


def mapped(ctx, cell):
    objects.HostMapping(ctx, host=HOSTS[0], cell_mapping=cell).create()


def servers(ctx, cell):
    with context.target_cell(ctx, cell) as in_cell:
        node = objects.ComputeNode.get_first_node_by_host_for_old_compat(in_cell, HOSTS[1])
        for name in ["honest-a", "honest-b"]:
            server = objects.Instance(
                in_cell, uuid=uuidutils.generate_uuid(), host=HOSTS[1], node=HOSTS[1], compute_id=node.id,
                launched_on=HOSTS[1], **OWNER, display_name=name, hostname=name,
                vm_state="active", power_state=1, flavor=flavor(ctx), system_metadata={}, metadata={},
                memory_mb=64, vcpus=1, root_gb=0, ephemeral_gb=0)
            server.create()
            server.info_cache.network_info = model.NetworkInfo()
            server.info_cache.save(update_cells=False)
            objects.InstanceMapping(
                ctx, instance_uuid=server.uuid, cell_mapping=cell, **OWNER,
                queued_for_delete=False).create()
            allocate(server.uuid, node.uuid)
    # nova lists by the second of the creation, the youngest first; both may be of one second.
    execute(ctx, cell, "UPDATE instances SET created_at = created_at - INTERVAL 1 HOUR "
            "WHERE display_name = 'honest-a'")


def execute(ctx, cell, *statements):
    with context.target_cell(ctx, cell) as in_cell, database.get_engine(context=in_cell).begin() as sql:
        for statement in statements:
            sql.execute(text(statement))


def rename(ctx, cell, old, new):
    execute(ctx, cell, f"RENAME TABLE {old} TO {new}")


# What reads the table gets an error that nova knows, as where a lock is awaited in vain: nova leaves the cell out of
# its lists then. Of one that it does not know, as where a table is missing, it fails to make the answer.
AWAITED = """
CREATE FUNCTION honest_awaits() RETURNS INT NOT DETERMINISTIC NO SQL
BEGIN
SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1205,
MESSAGE_TEXT = 'Lock wait timeout exceeded; try restarting transaction';
RETURN 0;
END
"""


def lists_fail(ctx, cell):
    rename(ctx, cell, "instances", "instances_honest")
    execute(ctx, cell, "DROP FUNCTION IF EXISTS honest_awaits", AWAITED,
            "CREATE VIEW instances AS SELECT * FROM instances_honest WHERE honest_awaits() = 0")


def lists_work(ctx, cell):
    execute(ctx, cell, "DROP VIEW IF EXISTS instances", "DROP FUNCTION IF EXISTS honest_awaits")
    rename(ctx, cell, "instances_honest", "instances")


def no_servers(ctx, cell):
    with context.target_cell(ctx, cell) as in_cell, database.get_engine(context=in_cell).begin() as sql:
        tables = models.BASE.metadata.tables
        of_hosts = tables["instances"].c.host.in_(HOSTS)
        found = [it.uuid for it in sql.execute(tables["instances"].select().where(of_hosts))]
        for table in tables.values():
            if "instance_uuid" in table.c:
                sql.execute(table.delete().where(table.c.instance_uuid.in_(found)))
        sql.execute(tables["instances"].delete().where(of_hosts))
    for uuid in found:
        objects.InstanceMapping.get_by_instance_uuid(ctx, uuid).destroy()
        free(uuid)


def share(ctx, cell):
    allocate(CONSUMER, placement("get", f"/resource_providers?name={HOSTS[0]}").json()["resource_providers"][0]["uuid"])


def nothing(ctx, cell):
    with context.target_cell(ctx, cell) as in_cell:
        is_renamed = inspect(database.get_engine(context=in_cell)).has_table("instances_honest")
    if is_renamed:
        lists_work(ctx, cell)
    no_servers(ctx, cell)
    free(CONSUMER)
    for host in HOSTS:
        for it in placement("get", f"/resource_providers?name={host}").json()["resource_providers"]:
            placement("delete", f"/resource_providers/{it['uuid']}")
        if any(it.host == host for it in objects.HostMappingList.get_all(ctx)):
            objects.HostMapping.get_by_host(ctx, host).destroy()
    with context.target_cell(ctx, cell) as in_cell, database.get_engine(context=in_cell).begin() as sql:
        for name in ["compute_nodes", "services"]:
            table = models.BASE.metadata.tables[name]
            sql.execute(table.delete().where(table.c.host.in_(HOSTS)))


STAGES = {
    "hosts": hosts, "unmapped": unmapped, "mapped": mapped, "servers": servers, "lists-fail": lists_fail,
    "lists-work": lists_work, "no-servers": no_servers, "share": share, "nothing": nothing,
}


def main():
    config.parse_args(["nova-stage", "--config-dir", "/etc/nova/nova.conf.d"])
    objects.register_all()
    rpc.init(config.CONF)
    ctx = context.get_admin_context()
    cell = next(it for it in objects.CellMappingList.get_all(ctx) if it.name == sys.argv[1])
    STAGES[sys.argv[2]](ctx, cell)


main()
