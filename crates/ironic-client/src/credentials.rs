//! Credentials for requests to Ironic, read from the keys of a Secret.

use std::collections::BTreeMap;

use api::baremetal::Authentication;
use api::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use ironic::Error;
use openstack_client::keystone::{Login, UserInProject, application_credential, tokens_url};
use serde_json::Value;

/// Maximum length of a value in bytes.
const LONGEST: usize = 4 * 1024;

/// The credentials. Debug shows none of their content.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// No authentication.
    None,
    /// The value of the header `Authorization`.
    HttpBasic(Secret<String>),
    /// A Keystone user.
    Keystone(Box<Login>),
}

impl Credentials {
    /// Reads the credentials from a Secret's data; `name` is the Secret's, for the error.
    ///
    /// # Errors
    /// Returns which key is missing or wrong.
    pub fn of(
        authentication: Authentication,
        name: &str,
        data: &BTreeMap<String, Secret<String>>,
    ) -> Result<Self, Error> {
        let given = CredentialFields { name, data };
        match authentication {
            Authentication::None => Ok(Self::None),
            Authentication::HttpBasic => {
                let (user, password) = (given.line("username")?, given.line("password")?);
                if user.contains(':') {
                    return Err(given.lack("username", "has a colon, which http_basic cannot send"));
                }
                let text = STANDARD.encode(format!("{user}:{password}"));
                Ok(Self::HttpBasic(Secret::new(format!("Basic {text}"))))
            }
            Authentication::Keystone => {
                Ok(Self::Keystone(Box::new(Login::new(given.url("authURL")?, given.identity()?))))
            }
        }
    }
}

/// The data of a Secret.
struct CredentialFields<'a> {
    name: &'a str,
    data: &'a BTreeMap<String, Secret<String>>,
}

impl CredentialFields<'_> {
    fn optional(&self, key: &str) -> Result<Option<&str>, Error> {
        // Editors leave a line break at the end of a Secret's value.
        let text = self.data.get(key).map(|it| it.expose().trim_end_matches(['\r', '\n']));
        if text.is_some_and(|it| it.len() > LONGEST) {
            return Err(self.lack(key, &format!("is longer than {} KiB", LONGEST >> 10)));
        }
        Ok(text.filter(|it| !it.is_empty()))
    }

    fn line(&self, key: &str) -> Result<&str, Error> {
        let text = self.optional(key)?.ok_or_else(|| self.lack(key, "is missing or empty"))?;
        if text.chars().any(char::is_control) {
            return Err(self.lack(key, "has more than one line"));
        }
        Ok(text)
    }

    fn url(&self, key: &str) -> Result<Uri, Error> {
        tokens_url(self.line(key)?).ok_or_else(|| self.lack(key, "is no http or https URL"))
    }

    /// Returns the identity that Keystone's version 3 needs to issue a token.
    fn identity(&self) -> Result<Secret<Value>, Error> {
        if let Some(id) = self.optional("applicationCredentialID")? {
            let secret = self.line("applicationCredentialSecret")?;
            return Ok(application_credential(id, secret));
        }
        let domain = |key| self.optional(key).map(|it| it.unwrap_or("Default"));
        let user = UserInProject {
            user: self.line("username")?,
            user_domain: domain("userDomainName")?,
            project: self.line("projectName")?,
            project_domain: domain("projectDomainName")?,
        };
        Ok(user.identity(self.line("password")?))
    }

    fn lack(&self, key: &str, what: &str) -> Error {
        Error::Credentials(format!("key {key} of Secret {} {what}", self.name))
    }
}
