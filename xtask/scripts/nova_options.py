# Writes what a release of nova knows of its options, as packed lines of JSON: its name, then its sections.
"""Run by `cargo xtask codegen options`, with the Python where nova is installed: nova_options.py RELEASE FILE"""

import gc
import gzip
import importlib
import importlib.metadata
import json
import re
import sys
import warnings

warnings.simplefilter("ignore")

from keystoneauth1 import loading  # noqa: E402
from oslo_config import cfg, generator, types  # noqa: E402

# What nova's own sample is made from, and what else nova-compute loads. A release need not have all.
NAMESPACES = """
nova.conf oslo.log oslo.messaging oslo.policy oslo.privsep oslo.service.periodic_task
oslo.service.service oslo.concurrency oslo.cache oslo.config oslo.reports oslo.versionedobjects
oslo.limit oslo.middleware oslo.db keystonemiddleware.audit keystonemiddleware.auth_token os_vif
os_win os_brick os_brick.lightos castellan.config cotyledon osprofiler
""".split()

# Where options are registered that no namespace lists.
MODULES = """
nova.compute.manager nova.virt.libvirt.driver nova.virt.libvirt.volume.volume nova.virt.ironic.driver
nova.virt.fake nova.privsep nova.rpc nova.service nova.utils nova.profiler nova.network.neutron
nova.volume.cinder nova.image.glance nova.share.manila nova.accelerator.cyborg
nova.keymgr.conf_key_mgr nova.scheduler.client.report castellan.key_manager.barbican_key_manager
castellan.key_manager.vault_key_manager vif_plug_ovs.privsep vif_plug_linux_bridge.privsep
os_brick.privileged os_brick.initiator.connector
""".split()

# Stands for a name that a human chooses, as in [mdev_NAME].
ANY = "anyname"


def normalized(section):
    """A section's name as oslo.config compares it."""
    return section if section == "DEFAULT" else section.lower()


def listed():
    """What oslo.config's generator lists, before it drops what its own JSON has no field for."""
    have = {it.name for it in importlib.metadata.entry_points(group="oslo.config.opts")}
    listed = generator._list_opts([it for it in NAMESPACES if it in have])
    for section, group in generator._get_groups(listed).items():
        # Made up by oslo.config to document its own sources.
        if section.startswith("sample_"):
            continue
        for _, options in group["namespaces"]:
            for option in options:
                yield section, option


def registered(conf):
    """What the modules of nova-compute have registered."""
    for entry in conf._opts.values():
        yield "DEFAULT", entry["opt"]
    for section, group in conf._groups.items():
        for entry in group._opts.values():
            yield section, entry["opt"]


def load():
    """Imports what nova-compute does; sections named by humans get one example."""
    import nova.conf

    for module in MODULES:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            print(f"{module} is not there: {error}", file=sys.stderr)
    conf = nova.conf.CONF
    conf([], project="nova", default_config_files=[], default_config_dirs=[])
    conf.set_override("enabled_mdev_types", [ANY], group="devices")
    conf.set_override("physnets", [ANY], group="neutron")
    nova.conf.devices.register_dynamic_opts(conf)
    nova.conf.neutron.register_dynamic_opts(conf)
    return conf


def plugins():
    """Options of all plugins of keystoneauth: which of them count is chosen by auth_type."""
    for name in sorted(loading.get_available_plugin_names()):
        yield from loading.get_auth_plugin_conf_options(name)
    yield from (it for it in loading.get_auth_common_conf_options() if it.dest == "auth_type")


def known_type(it):
    """What can be told of a value; None where every text will do, or a rule is not ours to repeat."""
    if type(it) is types.String:
        if it.regex or it.quotes:
            return None
        choices = [choice for choice in it.choices or [] if isinstance(choice, str)]
        found = {"choices": choices, "ignore_case": it.ignore_case, "max_length": it.max_length}
        found = {key: value for key, value in found.items() if value}
        return {"is": "string", **found} if choices or it.max_length else None
    if type(it) in (types.Integer, types.Port, types.Float):
        bounds = {"min": it.min, "max": it.max}
        if it.choices:
            bounds = {"choices": list(it.choices)}
        kind = "float" if type(it) is types.Float else "integer"
        return {"is": kind, **{key: value for key, value in bounds.items() if value is not None}}
    if type(it) is types.Boolean:
        return {"is": "boolean"}
    if type(it) is types.URI:
        return {"is": "uri", **({"schemes": sorted(it.schemes)} if it.schemes else {})}
    if type(it) in (types.HostAddress, types.HostDomain, types.Hostname):
        names = {"HostAddress": "host", "HostDomain": "domain", "Hostname": "hostname"}
        return {"is": names[type(it).__name__]}
    if type(it) is types.IPAddress:
        return {"is": "address"}
    if type(it) is types.List and not it.bounds:
        item = known_type(it.item_type)
        return {"is": "list", "item": item} if item else None
    if type(it) is types.Dict and not it.bounds and getattr(it, "key_value_separator", ":") == ":":
        # Where values have rules of their own, commas may belong to them.
        is_plain = type(it.value_type) is types.String and not known_type(it.value_type)
        return {"is": "dict"} if is_plain else None
    return None


def successors(section, option, sections):
    """The options that the reason of a deprecation names."""
    found = []
    pattern = r"(?:\[(\w+)\][ /]?)?\b([a-z]\w*_\w+)\b"
    for other, name in re.findall(pattern, option.deprecated_reason or ""):
        other = other or section
        known = sections.get(other, {}).get(name)
        if known is not None and known.dest == name and known is not option:
            found.append([other, name])
    return [it for idx, it in enumerate(found) if it not in found[:idx]]


def entry(section, option, sections):
    """What is kept of an option."""
    found = {}
    kind = known_type(option.type)
    if kind:
        found["type"] = kind
    if option.multi:
        found["multi"] = True
    if option.deprecated_for_removal:
        found["removal"] = successors(section, option, sections)
    return found


def with_old_names(section, options, sections, known):
    """Adds options and their old names, which may stand in other sections, to `known`."""
    for option in options:
        known.setdefault(section, {})[option.dest] = entry(section, option, sections)
    for option in options:
        for old in option.deprecated_opts:
            if old.name or old.group:
                of_section = known.setdefault(normalized(old.group or section), {})
                of_section.setdefault(old.name or option.dest, {"now": [section, option.dest]})


def privileged():
    """Sections of privsep's contexts, whose options are the same in each."""
    from oslo_privsep import priv_context

    contexts = [it for it in gc.get_objects() if isinstance(it, priv_context.PrivContext)]
    return {it.cfg_section: priv_context.OPTS for it in contexts}


def main(release, path):
    """Writes everything."""
    sections = {}
    conf = load()
    found = [*listed(), *registered(conf)]
    found += [(section, option) for section, options in privileged().items() for option in options]
    for section, option in found:
        sections.setdefault(normalized(section), {}).setdefault(option.dest, option)

    auth = {}
    with_old_names("", list(plugins()), {}, auth)
    known = {}
    for section, options in sections.items():
        shared = auth[""] if "auth_type" in options else {}
        own = [option for name, option in options.items() if name not in shared]
        with_old_names(section, own, sections, known)

    prefixes = {it: options for it, options in known.items() if it.endswith(ANY)}
    head = {
        "release": release,
        "nova": importlib.metadata.version("nova"),
        "plugins": sorted(loading.get_available_plugin_names()),
        "auth": dict(sorted(auth[""].items())),
        "prefixes": {it.removesuffix(ANY): options for it, options in prefixes.items()},
    }
    lines = [head]
    for section in sorted(set(known) - set(prefixes)):
        has_auth = "auth_type" in sections.get(section, {})
        options = dict(sorted(known[section].items()))
        # The name comes first, so that a section is found without reading the others.
        auth_too = {"auth": True} if has_auth else {}
        lines.append({"section": section, **auth_too, "options": options})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    with open(path, "wb") as file:
        # Without a time, so that the same options are the same file.
        file.write(gzip.compress(text.replace(ANY, "").encode(), mtime=0))


main(*sys.argv[1:])
