"""Asks nova's metadata API for a server that does not exist, signed as the agent signs; prints the status or "away".

Where agent and API have one secret the answer is 404, else 403. The folder of the agent's files is the argument."""

import hashlib
import hmac
import http.client
import ssl
import sys

from oslo_config import cfg

SERVER = "00000000-0000-0000-0000-000000000000"
OPTIONS = [
    cfg.StrOpt("nova_metadata_host", default="127.0.0.1"),
    cfg.PortOpt("nova_metadata_port", default=8775),
    cfg.StrOpt("nova_metadata_protocol", default="http"),
    cfg.BoolOpt("nova_metadata_insecure", default=False),
    cfg.StrOpt("auth_ca_cert"),
    cfg.StrOpt("nova_client_cert"),
    cfg.StrOpt("nova_client_priv_key"),
    cfg.StrOpt("metadata_proxy_shared_secret", default="", secret=True),
]


def connection(conf):
    """A connection to the API, which is not opened yet."""
    where = (conf.nova_metadata_host.strip("[]"), conf.nova_metadata_port)
    if conf.nova_metadata_protocol == "http":
        return http.client.HTTPConnection(*where, timeout=20)
    context = ssl.create_default_context(cafile=conf.auth_ca_cert)
    if conf.nova_metadata_insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if conf.nova_client_cert:
        context.load_cert_chain(conf.nova_client_cert, conf.nova_client_priv_key)
    return http.client.HTTPSConnection(*where, timeout=20, context=context)


conf = cfg.ConfigOpts()
conf.register_opts(OPTIONS)
conf(["--config-dir", sys.argv[1]], project="neutron", default_config_files=[])
secret = conf.metadata_proxy_shared_secret.encode()
headers = {
    "X-Instance-ID": SERVER,
    "X-Tenant-ID": SERVER.replace("-", ""),
    "X-Forwarded-For": "192.0.2.1",
    "X-Instance-ID-Signature": hmac.new(secret, SERVER.encode(), hashlib.sha256).hexdigest(),
}
try:
    api = connection(conf)
    api.request("GET", "/openstack/latest/meta_data.json", headers=headers)
    print(api.getresponse().status)
except (OSError, http.client.HTTPException):
    print("away")
