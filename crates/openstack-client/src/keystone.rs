//! Keystone tokens with their catalog, cached until shortly before they expire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::secret::Secret;
use http::{Request, Response, Uri, header};
use jiff::{SignedDuration, Timestamp};
use operator_runtime::answer_memory::Kept;
use operator_runtime::clock;
use operator_runtime::http_client::{HttpClient, is_base_url};
use operator_runtime::lease::LeadershipWatch;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalog::{Catalog, Entry};
use crate::error::Error;
use crate::shared_request::SharedRequest;

/// Time limit of one response.
const DEADLINE: Duration = Duration::from_mins(1);
/// How long before its expiry a token is no longer used.
const MARGIN: SignedDuration = SignedDuration::from_mins(2);
/// Maximum size of a response in bytes: a token's description lists roles and the catalog.
const LARGEST_ANSWER: usize = 1024 * 1024;

/// The fields of a token's description that are read.
#[derive(Deserialize)]
struct TokenResponse {
    token: Described,
}

#[derive(Deserialize)]
struct Described {
    expires_at: Timestamp,
    #[serde(default)]
    catalog: Vec<Entry>,
}

/// A user with a password, and the project in which the user acts.
#[derive(Clone, Copy, Debug)]
pub struct UserInProject<'a> {
    /// The user's name.
    pub user: &'a str,
    /// The name of the user's domain.
    pub user_domain: &'a str,
    /// The project's name.
    pub project: &'a str,
    /// The name of the project's domain.
    pub project_domain: &'a str,
}

impl UserInProject<'_> {
    /// Returns the request body by which version 3 of Keystone issues a token.
    pub fn identity(&self, password: &str) -> Secret<Value> {
        let domain = |name: &str| json!({ "name": name });
        let user = json!({
            "name": self.user, "password": password, "domain": domain(self.user_domain),
        });
        let project = json!({ "name": self.project, "domain": domain(self.project_domain) });
        Secret::new(json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": project},
        }}))
    }
}

/// Returns the request body by which version 3 of Keystone issues a token to an application credential,
/// which has its user and project already.
pub fn application_credential(id: &str, secret: &str) -> Secret<Value> {
    Secret::new(json!({"auth": {"identity": {
        "methods": ["application_credential"],
        "application_credential": {"id": id, "secret": secret},
    }}}))
}

/// The login, and what Keystone last said to it.
#[derive(Debug)]
pub struct Login {
    url: Uri,
    identity: Secret<Value>,
    /// How long no other login is tried after a refused one.
    pause: Duration,
    /// Nothing is changed while this says that another process leads; `None` without that check.
    leadership: Option<LeadershipWatch>,
    last: SharedRequest<Last, Answer>,
}

/// What Keystone last said to a login.
#[derive(Debug, Default)]
enum Last {
    /// Nothing, or a token that a server rejected since.
    #[default]
    Nothing,
    /// It issued a token.
    Issued(Token),
    /// It refused the credentials at this time.
    Refused(Instant),
}

/// What Keystone says to one login; all who wait for it get the same.
type Answer = Result<Token, Error>;

/// A token, its expiry, and the catalog that came with it.
#[derive(Clone, Debug)]
pub struct Token {
    text: Secret<String>,
    ends: Timestamp,
    catalog: Arc<Catalog>,
    _kept: Arc<Kept>,
}

impl Clone for Login {
    fn clone(&self) -> Self {
        let last = SharedRequest::default();
        let (url, identity) = (self.url.clone(), self.identity.clone());
        Self { url, identity, pause: self.pause, leadership: self.leadership.clone(), last }
    }
}

/// Returns the URL of a Keystone without its version and the slash at its end: `auth_url` has them or not,
/// as OpenStack's clients take it.
pub fn root_url(auth_url: &str) -> &str {
    auth_url.trim_end_matches('/').trim_end_matches("/v3").trim_end_matches('/')
}

/// Returns where a Keystone issues tokens; `None` when the text is not an http or https URL, or one with
/// a user, query or fragment.
pub fn tokens_url(auth_url: &str) -> Option<Uri> {
    let url = format!("{}/v3/auth/tokens", root_url(auth_url));
    if is_base_url(&url) { url.parse().ok() } else { None }
}

impl Login {
    /// Creates a login without sending anything; `url` is from [`tokens_url`]. A refused login is
    /// tried again with the next call.
    pub fn new(url: Uri, identity: Secret<Value>) -> Self {
        let last = SharedRequest::default();
        Self { url, identity, pause: Duration::ZERO, leadership: None, last }
    }

    /// Lets clients with this login change something only while this process leads. It is checked
    /// before each request, because a process may be suspended between two of them.
    #[must_use]
    pub fn leading(self, leadership: LeadershipWatch) -> Self {
        Self { leadership: Some(leadership), ..self }
    }

    /// Returns whether clients may change something now.
    pub(crate) fn may_write(&self) -> bool {
        self.leadership.as_ref().is_none_or(|it| it.borrow().leads())
    }

    /// Tries no other login for so long after a refused one, because Keystone may lock a user out
    /// who tries too often; all callers are refused until then.
    #[must_use]
    pub fn pausing(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Returns a token that is valid for a while. Concurrent callers share one request and what came
    /// of it, so that none waits for more than one.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when Keystone refuses the credentials, or has refused them a while
    /// ago, see [`Login::pausing`].
    pub async fn token(&self, http: &HttpClient) -> Result<Token, Error> {
        let known = |last: &Last| match last {
            Last::Issued(token) if token.is_good(clock::now()) => Some(Ok(token.clone())),
            Last::Refused(at) if at.elapsed() < self.pause => Some(Err(Error::Unauthorized)),
            Last::Issued(_) | Last::Refused(_) | Last::Nothing => None,
        };
        let learned = |answer: &Answer| match answer {
            Ok(token) => Last::Issued(token.clone()),
            Err(Error::Unauthorized) => Last::Refused(Instant::now()),
            Err(_) => Last::Nothing,
        };
        self.last.get("token", known, || self.ask(http.clone()), learned).await
    }

    /// Discards a token that a server rejected, unless it was renewed since.
    pub fn forget(&self, token: &Token) {
        let is_it = |last: &Last| matches!(last, Last::Issued(it) if it.text() == token.text());
        self.last.forget_if(is_it);
    }

    fn ask(&self, http: HttpClient) -> impl Future<Output = Answer> + Send + use<> {
        let (url, body) = (self.url.clone(), self.identity.expose().to_string());
        async move {
            let request = Request::post(url)
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json")
                .body(body.into())
                .map_err(|_| Error::NotUrl)?;
            let answer = http.send(request, DEADLINE, LARGEST_ANSWER).await;
            let token = Token::of(&answer.map_err(|it| Error::of_http(it, LARGEST_ANSWER))?)?;
            let kept = http.share().keep(token.footprint())?;
            Ok(Token { _kept: Arc::new(kept), ..token })
        }
    }
}

impl Token {
    /// Reads the token of a response, or why there is none.
    pub fn of(answer: &Response<impl AsRef<[u8]>>) -> Result<Self, Error> {
        let body = answer.body().as_ref();
        if let Some(error) = Error::of_response(answer.status(), body) {
            return Err(error);
        }
        let text = answer.headers().get("x-subject-token").and_then(|it| it.to_str().ok());
        let told = serde_json::from_slice(body);
        let (Some(text), Ok(TokenResponse { token })) = (text, told) else {
            return Err(Error::NotTheService);
        };
        Ok(Self {
            text: Secret::new(text.to_owned()),
            ends: token.expires_at,
            catalog: Arc::new(Catalog::of(token.catalog)),
            _kept: Arc::default(),
        })
    }

    fn footprint(&self) -> usize {
        size_of::<Self>() + self.text().len() + self.catalog.footprint()
    }

    /// Returns whether it is valid for a while.
    pub fn is_good(&self, now: Timestamp) -> bool {
        now + MARGIN < self.ends
    }

    /// Returns the text that goes into the header `X-Auth-Token`.
    pub fn text(&self) -> &str {
        self.text.expose()
    }

    /// Returns where the services answer.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_credential_logs_in_without_a_user_and_without_a_scope() {
        let expected = json!({"auth": {"identity": {
            "methods": ["application_credential"],
            "application_credential": {"id": "0123", "secret": "s3cret"},
        }}});
        assert_eq!(*application_credential("0123", "s3cret").expose(), expected);
    }

    #[test]
    fn tokens_are_issued_below_the_auth_url() {
        for (auth_url, expected) in [
            ("http://k:5000", Some("http://k:5000/v3/auth/tokens")),
            ("https://k/identity/v3/", Some("https://k/identity/v3/auth/tokens")),
            ("ftp://k", None),
            ("k:5000", None),
            ("http://k/?a=b", None),
            ("http://k/?", None),
            ("http://k/#", None),
            ("http://u:p@k", None),
        ] {
            let found = tokens_url(auth_url).map(|it| it.to_string());
            assert_eq!(found.as_deref(), expected, "{auth_url}");
        }
    }
}
