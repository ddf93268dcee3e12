"""The filter that says what is wrong with a host's certificate, so that it is refused before anything uses it."""

import datetime
import ipaddress

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
    description: the certificates of the authority, in PEM
    type: str
    required: true
  address:
    description: the address at which the host is libvirt's server, and as which it is a client of others
    type: str
"""

BEGIN = "-----BEGIN CERTIFICATE-----"


def certificate_faults(certificate, authority, address=""):
    """What is wrong with a host's certificate and its authority's; with an address, also what libvirt refuses."""
    faults = []
    for what, text in (("The certificate", certificate), ("The certificate of its authority", authority)):
        try:
            # Others may follow it: the first one counts.
            first = x509.load_pem_x509_certificate(text[text.index(BEGIN):].encode())
        except ValueError:
            faults.append(f"{what} is missing or cannot be read.")
            continue
        faults += _validity_faults(what, first)
        if address and what == "The certificate":
            faults += _usage_faults(first) + _address_faults(first, address)
    return faults


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
