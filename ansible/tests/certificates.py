"""Certificates of hosts as cert-manager makes them, and faulty ones, for tests."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NOW = datetime.datetime.now(datetime.timezone.utc)
DAY = datetime.timedelta(days=1)


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _begin(subject, issuer, key, begins, ends):
    builder = x509.CertificateBuilder().subject_name(_name(subject)).issuer_name(_name(issuer))
    return (builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(NOW + begins * DAY).not_valid_after(NOW + ends * DAY))


def _pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


class Authority:
    """An authority of the test's own."""

    def __init__(self, ends=30, name="authority"):
        self.name = name
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        builder = _begin(name, name, self.key, begins=-30, ends=ends)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.pem = _pem(builder.sign(self.key, hashes.SHA256()))

    def issue(self, name, address=None, begins=-2, ends=10, is_elliptic=False, enciphers=True, is_client=True):
        """A certificate of these properties, and its key."""
        key = (ec.generate_private_key(ec.SECP256R1()) if is_elliptic
               else rsa.generate_private_key(public_exponent=65537, key_size=2048))
        names = [x509.DNSName(name)] + ([x509.IPAddress(ipaddress.ip_address(address))] if address else [])
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH] + ([ExtendedKeyUsageOID.CLIENT_AUTH] if is_client else [])
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=enciphers, data_encipherment=False,
            key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
        )
        builder = _begin(name, self.name, key, begins, ends)
        builder = builder.add_extension(usage, critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption(),
        )
        return _pem(builder.sign(self.key, hashes.SHA256())), private.decode()
