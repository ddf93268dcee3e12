//! Requests and responses of the fake services of OpenStack.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::Value;

/// Status and body of a response; the body is null when there is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// A response; the error is a rejection.
pub(crate) type Outcome = Result<Answer, Answer>;

impl Answer {
    pub(crate) fn of(status: u16, body: Value) -> Self {
        Self { status, body }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if self.body.is_null() {
            return status.into_response();
        }
        let json = [(header::CONTENT_TYPE, "application/json")];
        (status, json, self.body.to_string()).into_response()
    }
}

/// The query string of a request; values are used as they are, without decoding.
pub(crate) struct Query<'a>(pub(crate) &'a str);

impl<'a> Query<'a> {
    /// Returns the value of a parameter, or `None` when it is absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let pairs = self.0.split('&').filter_map(|it| it.split_once('='));
        pairs.into_iter().find(|(it, _)| *it == name).map(|(_, value)| value)
    }
}
