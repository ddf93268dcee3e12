//! A webhook's own CA and certificate: issued, verified and turned into a server configuration.
//!
//! A CA signs a single certificate and its key is discarded, so nothing in the Secret can sign
//! another one. A renewal creates a new CA and certificate and keeps the previous CA in the bundle.

use std::{fmt, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    RootCertStore, ServerConfig,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};

use crate::error::{Error, Result};

/// Validity of a certificate.
const VALID: SignedDuration = SignedDuration::from_hours(365 * 24);

/// How long before its expiry a certificate is renewed.
pub const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(90 * 24);

/// A certificate with its key, and the CA certificates that clients trust it by.
#[derive(Clone, Eq, PartialEq)]
pub struct Bundle {
    /// CA certificates in PEM, the certificate's own first, then the previous one.
    pub authorities: String,
    /// The certificate in PEM.
    pub certificate: String,
    /// The certificate's private key in PEM; never printed.
    pub key: String,
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bundle")
    }
}

/// Accepts clients with a certificate of one of these CAs, in PEM; any client when the text is empty.
pub fn client_verifier(authorities: &str) -> Result<Arc<dyn ClientCertVerifier>> {
    if authorities.trim().is_empty() {
        return Ok(WebPkiClientVerifier::no_client_auth());
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(authorities));
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
    let unusable = |it| Error::process("the authorities of the webhook's clients are unusable", it);
    verifier.build().map_err(unusable)
}

/// Returns the DNS name by which the API server addresses a Service.
pub fn service_name(service: &str, namespace: &str) -> String {
    format!("{service}.{namespace}.svc")
}

impl Bundle {
    /// Issues a new CA and a certificate for `name`; the CA of `previous` stays trusted.
    pub fn issue(name: &str, now: Timestamp, previous: Option<&Self>) -> Result<Self> {
        Self::issue_for(name, now, previous, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// As [`Bundle::issue`], for another key purpose.
    pub(crate) fn issue_for(
        name: &str,
        now: Timestamp,
        previous: Option<&Self>,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<Self> {
        let failed = |it: rcgen::Error| Error::process("cannot make the webhook's certificate", it);
        let (authority_key, key) =
            (KeyPair::generate().map_err(failed)?, KeyPair::generate().map_err(failed)?);
        let authority = authority_params(name, now);
        let own = authority.self_signed(&authority_key).map_err(failed)?;
        let issuer = Issuer::from_params(&authority, &authority_key);
        let certificate = leaf_params(name, now, purpose)
            .and_then(|it| it.signed_by(&key, &issuer))
            .map_err(failed)?;
        let before = previous.and_then(|it| first_certificate(&it.authorities)).unwrap_or_default();
        Ok(Self {
            authorities: format!("{}{before}", own.pem()),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// Returns whether a client that trusts the CAs accepts the certificate for `name` at time
    /// `at`.
    pub fn serves(&self, name: &str, at: Timestamp) -> bool {
        self.verified(name, at).is_some()
    }

    /// Returns whether a new certificate is due: this one expires soon, is for another name, or is
    /// damaged.
    pub fn is_due(&self, name: &str, now: Timestamp) -> bool {
        let later = now.checked_add(RENEW_BEFORE).unwrap_or(Timestamp::MAX);
        !(self.serves(name, now) && self.serves(name, later) && self.server_config().is_ok())
    }

    /// Returns a server configuration for any client; TLS 1.2 and 1.3.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>> {
        self.server_config_for(WebPkiClientVerifier::no_client_auth())
    }

    /// Returns a server configuration for the clients that a verifier accepts; TLS 1.2 and 1.3.
    pub fn server_config_for(
        &self,
        clients: Arc<dyn ClientCertVerifier>,
    ) -> Result<Arc<ServerConfig>> {
        let failed =
            |it: rustls::Error| Error::process("the webhook's certificate is unusable", it);
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|it| Error::process("the webhook's key is unreadable", it))?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_client_cert_verifier(clients)
            .with_single_cert(certificates(&self.certificate), key)
            .map_err(failed)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn verified(&self, name: &str, at: Timestamp) -> Option<()> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(&self.authorities));
        let certificate = certificates(&self.certificate).into_iter().next()?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
        let seconds = u64::try_from(at.as_second()).ok()?;
        let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let name = ServerName::try_from(name.to_owned()).ok()?;
        verifier.build().ok()?.verify_server_cert(&certificate, &[], &name, &[], at).ok()?;
        Some(())
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok).collect()
}

/// Returns the first certificate of a PEM text, as text.
fn first_certificate(pem: &str) -> Option<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let end = pem.find(END)? + END.len();
    Some(format!("{}\n", pem[..end].trim()))
}

fn authority_params(name: &str, now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    // Successive CAs have different names, so that a client that trusts two does not confuse them.
    let subject = format!("{name} authority {}", now.as_second());
    params.distinguished_name.push(DnType::CommonName, subject);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    valid(&mut params, now);
    params
}

fn leaf_params(
    name: &str,
    now: Timestamp,
    purpose: ExtendedKeyUsagePurpose,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new([name.to_owned()])?;
    // A common name is limited to 64 characters and is ignored when there are alternative names.
    params.distinguished_name.push(DnType::CommonName, "webhook");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    valid(&mut params, now);
    Ok(params)
}

/// Sets the validity in whole days, from the day before, because clocks differ.
fn valid(params: &mut CertificateParams, now: Timestamp) {
    let day = |shift: SignedDuration| {
        let at = now.checked_add(shift).unwrap_or(now).to_zoned(TimeZone::UTC).date();
        let (month, day) = (at.month().unsigned_abs(), at.day().unsigned_abs());
        rcgen::date_time_ymd(at.year().into(), month, day)
    };
    params.not_before = day(SignedDuration::from_hours(-24));
    params.not_after = day(VALID);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "nova-operator.edpm-system.svc";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn days(n: i64) -> SignedDuration {
        SignedDuration::from_hours(n * 24)
    }

    #[test]
    fn a_certificate_serves_its_service_and_nothing_else() {
        let now = at("2026-03-01T12:00:00Z");
        let bundle =
            Bundle::issue(&service_name("nova-operator", "edpm-system"), now, None).unwrap();
        assert!(bundle.serves(NAME, now));
        assert!(!bundle.serves("nova-operator.other.svc", now));
        assert!(bundle.server_config().is_ok());
    }

    #[test]
    fn renewal_is_due_ninety_days_before_the_end() {
        let now = at("2026-03-01T12:00:00Z");
        let bundle = Bundle::issue(NAME, now, None).unwrap();
        assert!(!bundle.is_due(NAME, now));
        assert!(!bundle.is_due(NAME, now + days(365 - 92)));
        assert!(bundle.is_due(NAME, now + days(365 - 89)));
        assert!(bundle.serves(NAME, now + days(363)) && !bundle.serves(NAME, now + days(366)));
    }

    #[test]
    fn a_bundle_that_is_damaged_or_for_another_name_is_due() {
        let now = at("2026-03-01T12:00:00Z");
        let bundle = Bundle::issue(NAME, now, None).unwrap();
        let other = Bundle::issue(NAME, now, None).unwrap();
        assert!(bundle.is_due("other.edpm-system.svc", now));
        assert!(Bundle { key: other.key.clone(), ..bundle.clone() }.is_due(NAME, now));
        assert!(Bundle { authorities: other.authorities, ..bundle.clone() }.is_due(NAME, now));
        assert!(Bundle { certificate: "x".into(), ..bundle }.is_due(NAME, now));
    }

    #[test]
    fn clients_accept_the_old_and_the_new_certificate_during_a_renewal() {
        let now = at("2026-03-01T12:00:00Z");
        let old = Bundle::issue(NAME, now, None).unwrap();
        let new = Bundle::issue(NAME, now + days(300), Some(&old)).unwrap();
        let newest = Bundle::issue(NAME, now + days(600), Some(&new)).unwrap();
        let old_with_new = Bundle { authorities: new.authorities.clone(), ..old };
        assert!(old_with_new.serves(NAME, now + days(300)) && new.serves(NAME, now + days(300)));
        assert_eq!(certificates(&newest.authorities).len(), 2);
    }

    #[test]
    fn a_key_is_not_printed() {
        let bundle = Bundle::issue(NAME, at("2026-03-01T12:00:00Z"), None).unwrap();
        assert_eq!(format!("{bundle:?}"), "Bundle");
    }
}
