"""The filter that says what is wrong with a host's certificate, so that it is refused before anything uses it."""

import datetime
import ipaddress
import re

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID

DOCUMENTATION = """
name: certificate_faults
short_description: sentences about a certificate in PEM that cannot be used
options:
  _input:
    description: the certificate of the host, before those that it is signed by
    type: str
    required: true
  authority:
    description: the certificates of the authority, and perhaps of others, in PEM
    type: str
    required: true
  address:
    description: the address at which the host is libvirt's server, and as which it is a client of others
    type: str
"""

PEM = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def certificate_faults(certificate, authority, address=""):
    """What is wrong with a host's certificate and its authority's; with an address, also what libvirt refuses."""
    chain, bundle = _certificates(certificate), _certificates(authority)
    return _own_faults(chain, address) + _authority_faults(chain, bundle)


def _certificates(text):
    """The certificates in a text; none where one of them cannot be read."""
    try:
        return [x509.load_pem_x509_certificate(pem.encode()) for pem in PEM.findall(text)]
    except ValueError:
        return []


def _own_faults(chain, address):
    """The host's certificate is the first one; others that it is signed by may follow."""
    if not chain:
        return ["The certificate is missing or cannot be read."]
    faults = _validity_faults("The certificate", chain[0])
    return faults + _usage_faults(chain[0]) + _address_faults(chain[0], address) if address else faults


def _authority_faults(chain, bundle):
    """Of a bundle those count that have signed the host's certificate; one of them that is valid is enough."""
    if not bundle:
        return ["The certificate of its authority is missing or cannot be read."]
    issuers = [certificate.issuer for certificate in chain]
    signers = [certificate for certificate in bundle if certificate.subject in issuers]
    return min((_validity_faults("The certificate of its authority", signer) for signer in signers or bundle), key=len)


def _validity_faults(what, certificate):
    now = datetime.datetime.now(datetime.timezone.utc)
    begin, end = _time(certificate, "not_valid_before"), _time(certificate, "not_valid_after")
    if now > end:
        return [f"{what} expired at {end:%Y-%m-%d %H:%M} UTC."]
    return [f"{what} is not valid before {begin:%Y-%m-%d %H:%M} UTC."] if now < begin else []


def _time(certificate, name):
    """A time of the certificate; versions of the library before 42 have it without its zone alone."""
    return getattr(certificate, f"{name}_utc", None) or getattr(certificate, name).replace(tzinfo=datetime.timezone.utc)


def _extension(certificate, oid):
    try:
        return certificate.extensions.get_extension_for_oid(oid).value
    except x509.ExtensionNotFound:
        return None


def _usage_faults(certificate):
    """libvirt and QEMU do not start with such a certificate, whatever the kind of its key."""
    usage = _extension(certificate, ExtensionOID.KEY_USAGE)
    lacks = [] if usage is None else [
        name for name, is_there in (("digital signature", usage.digital_signature), ("key encipherment", usage.key_encipherment))
        if not is_there
    ]
    purposes = _extension(certificate, ExtensionOID.EXTENDED_KEY_USAGE)
    known = (("server auth", ExtendedKeyUsageOID.SERVER_AUTH), ("client auth", ExtendedKeyUsageOID.CLIENT_AUTH))
    lacks += [] if purposes is None else [name for name, oid in known if oid not in purposes]
    return [f"The certificate lacks {', '.join(lacks)} among its keyUsages."] if lacks else []


def _address_faults(certificate, address):
    try:
        kind, wanted = x509.IPAddress, ipaddress.ip_address(str(address))
    except ValueError:
        # A host may be known by a name alone.
        kind, wanted = x509.DNSName, str(address)
    names = _extension(certificate, ExtensionOID.SUBJECT_ALTERNATIVE_NAME)
    if names is not None and wanted in names.get_values_for_type(kind):
        return []
    return [f"The certificate is not for the address {address}, at which other hosts look for this one."]


class FilterModule:
    """Gives the filter its name."""

    def filters(self):
        return {"certificate_faults": certificate_faults}
