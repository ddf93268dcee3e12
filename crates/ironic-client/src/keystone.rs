//! Keystone tokens, cached until shortly before they expire.

use config_drive::Secret;
use http::{Request, Response, Uri, header};
use hyper::body::Bytes;
use ironic::Error;
use jiff::{SignedDuration, Timestamp};
use operator_runtime::tls_stream::CaTrust;
use operator_runtime::{clock, http_client};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::answer::{DEADLINE, of_web};

/// How long before its expiry a token is no longer used.
const MARGIN: SignedDuration = SignedDuration::from_mins(2);
/// Maximum size of a response in bytes: a token's description lists roles and perhaps a catalog.
const LARGEST_ANSWER: usize = 1024 * 1024;

/// The fields of a token's description that are read.
#[derive(Deserialize)]
struct TokenResponse {
    token: Described,
}

#[derive(Deserialize)]
struct Described {
    expires_at: Timestamp,
}

/// The login, and the last token that Keystone issued for it.
#[derive(Debug)]
pub struct Login {
    url: Uri,
    identity: Secret<Value>,
    token: Mutex<Option<Token>>,
}

/// A token and its expiry.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    text: Secret<String>,
    ends: Timestamp,
}

impl Clone for Login {
    fn clone(&self) -> Self {
        Self::new(self.url.clone(), self.identity.clone())
    }
}

impl Login {
    pub(crate) fn new(url: Uri, identity: Secret<Value>) -> Self {
        Self { url, identity, token: Mutex::new(None) }
    }

    /// Returns a token that is valid for a while. Concurrent callers share one request.
    pub(crate) async fn token(&self, trust: &CaTrust) -> Result<Secret<String>, Error> {
        let mut kept = self.token.lock().await;
        if let Some(token) = kept.as_ref().filter(|it| it.is_good(clock::now())) {
            return Ok(token.text.clone());
        }
        let token = self.ask(trust).await.map_err(of_keystone)?;
        Ok(kept.insert(token).text.clone())
    }

    /// Discards the cached token, because a server rejected it.
    pub(crate) async fn forget(&self) {
        *self.token.lock().await = None;
    }

    async fn ask(&self, trust: &CaTrust) -> Result<Token, Error> {
        let request = Request::post(self.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .body(self.identity.expose().to_string().into())
            .map_err(|_| Error::NotUrl)?;
        let answer =
            http_client::send(request, trust, DEADLINE, LARGEST_ANSWER).await.map_err(of_web)?;
        Token::of(&answer)
    }
}

impl Token {
    /// Reads the token of a response, or why there is none.
    pub(crate) fn of(answer: &Response<Bytes>) -> Result<Self, Error> {
        if let Some(error) = Error::of_answer(answer.status().as_u16(), answer.body()) {
            return Err(error);
        }
        let text = answer.headers().get("x-subject-token").and_then(|it| it.to_str().ok());
        let response = serde_json::from_slice(answer.body());
        let (Some(text), Ok(TokenResponse { token })) = (text, response) else {
            return Err(Error::NotFound);
        };
        Ok(Self { text: Secret::new(text.to_owned()), ends: token.expires_at })
    }

    /// Returns whether it is valid for a while.
    pub(crate) fn is_good(&self, now: Timestamp) -> bool {
        now + MARGIN < self.ends
    }
}

/// Adds to the error's text that it comes from Keystone.
pub(crate) fn of_keystone(error: Error) -> Error {
    match error {
        Error::Unreachable(cause) => Error::Unreachable(format!("its Keystone: {cause}")),
        Error::Untrusted(cause) => Error::Untrusted(format!("that of its Keystone: {cause}")),
        Error::NotFound | Error::NotIronic => {
            Error::Credentials("what answers at authURL is no Keystone of version 3".into())
        }
        Error::TooLarge(_) => Error::TooLarge("its Keystone's answer".into()),
        Error::NotUrl
        | Error::Version { .. }
        | Error::Unauthorized
        | Error::Forbidden(_)
        | Error::Credentials(_)
        | Error::Conflict(_)
        | Error::Busy(_)
        | Error::Refused(_)
        | Error::Broken(..) => error,
    }
}
