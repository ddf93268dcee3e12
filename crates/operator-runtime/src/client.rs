//! Builds the Kubernetes client over any tower service: requests are counted and have a time limit.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Bytes, HttpBody};
use futures::{FutureExt as _, future::BoxFuture};
use http::{
    HeaderValue, Request, Response,
    header::{CONTENT_TYPE, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use tower::{Layer, Service};

use crate::{
    error::{BoxError, During as _, Error, Result, TimedOut},
    metrics::Metrics,
};

pub(crate) mod call;
pub(crate) mod depth;

pub use call::Call;

/// Time limit of a plain request, including the body of its response.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Creates a client for the cluster of `config`, counted in `metrics`; `operator` becomes part of
/// its user agent.
///
/// # Guarantees
/// A plain request ends within [`REQUEST_TIMEOUT`]; watches and followed logs have no time limit.
///
/// # Caveats
/// Requests are not retried here: the library would resend a create whose success response was
/// lost.
pub fn client(mut config: Config, operator: &str, metrics: &Metrics) -> Result<Client> {
    let agent = format!("edpm-{operator}/{}", env!("CARGO_PKG_VERSION"));
    let agent = HeaderValue::from_str(&agent)
        .map_err(|error| Error::process("the operator's name is no header value", error))?;
    config.headers.push((USER_AGENT, agent));
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config).during("request")?;
    Ok(builder.with_layer(&Bounds::new(metrics.clone())).build())
}

/// Tower layer that counts every request and limits the duration of plain ones.
#[derive(Clone, Debug)]
pub struct Bounds(Metrics);

impl Bounds {
    /// Creates a layer that counts in `metrics`.
    pub fn new(metrics: Metrics) -> Self {
        Self(metrics)
    }
}

impl<S> Layer<S> for Bounds {
    type Service = Bounded<S>;

    fn layer(&self, inner: S) -> Bounded<S> {
        Bounded { inner, bounds: self.clone() }
    }
}

/// A service wrapped by [`Bounds`].
#[derive(Debug)]
pub struct Bounded<S> {
    inner: S,
    bounds: Bounds,
}

impl<S, B> Service<Request<Body>> for Bounded<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let call = Call::of(&request);
        let Bounds(metrics) = self.bounds.clone();
        let answer = self.inner.call(request);
        async move {
            let result = if call.streams {
                answer.await.map_err(Into::into).map(pruned)
            } else {
                let within = tokio::time::timeout(REQUEST_TIMEOUT, whole(answer)).await;
                within.unwrap_or_else(|_| Err(Box::new(TimedOut(REQUEST_TIMEOUT))))
            };
            metrics.count_request(call.verb, &call.resource, &code(&result));
            result
        }
        .boxed()
    }
}

/// Waits for the response and its whole body.
async fn whole<F, B, E>(answer: F) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (head, body) = pruned(answer.await.map_err(Into::into)?).into_parts();
    let bytes = body.collect().await?.to_bytes();
    Ok(Response::from_parts(head, boxed(Full::new(bytes))))
}

/// Removes JSON that nests too deep from the response; other content types, such as logs, stay as
/// they are.
fn pruned<B>(answer: Response<B>) -> Response<UnsyncBoxBody<Bytes, BoxError>>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    if kind.is_some_and(|it| !it.contains("json")) {
        return answer.map(boxed);
    }
    let mut pruner = depth::Pruner::default();
    answer
        .map(|body| boxed(body.map_frame(move |frame| frame.map_data(|chunk| pruner.prune(chunk)))))
}

fn boxed<B>(body: B) -> UnsyncBoxBody<Bytes, BoxError>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

fn code<B>(result: &Result<Response<B>, BoxError>) -> String {
    match result {
        Ok(response) => response.status().as_u16().to_string(),
        Err(error) if error.is::<TimedOut>() => "timeout".into(),
        Err(_) => "error".into(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Api, api::ListParams};
    use serde_json::json;
    use testkit::fake_api::FakeApi;

    use super::*;

    /// Returns a client of a fake API server with the operators' metrics and time limit.
    pub(crate) fn client(server: &FakeApi, metrics: &Metrics) -> Client {
        Client::new(Bounds::new(metrics.clone()).layer(server.clone()), "ns")
    }

    #[tokio::test]
    async fn a_request_is_counted_with_its_verb_resource_and_code() {
        let metrics = Metrics::new("test");
        let server = FakeApi::answering([(200, json!({ "metadata": {}, "items": [] }))]);
        let api: Api<ConfigMap> = Api::default_namespaced(client(&server, &metrics));
        api.list(&ListParams::default()).await.unwrap();
        let text = metrics.encode();
        let line = r#"edpm_api_requests_total{verb="list",resource="configmaps",code="200"} 1"#;
        assert!(text.contains(line), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_plain_request_without_an_answer_ends_as_a_timeout() {
        let metrics = Metrics::new("test");
        let server = FakeApi::default().with_latency(Duration::from_hours(1));
        let api: Api<ConfigMap> = Api::default_namespaced(client(&server, &metrics));
        let error = api.get("x").await.during("get configmaps/x").unwrap_err();
        assert_eq!(error.reason(), "Timeout", "{}", error.chain());
        assert!(metrics.encode().contains(r#"code="timeout"} 1"#));
    }
}
