//! The four exchanges of a login: start, tune, open, close.

use std::io;

use api::conditions::printable;
use nova_config::transport_url::Broker;
use operator_runtime::tls_stream::Stream;
use tokio::io::AsyncWriteExt;

use super::outcome::Login;
use super::wire;
use super::wire::{Arguments, Method, ReadFault, method};

/// Maximum length of a text from the broker in a message.
const LONGEST_TEXT: usize = 200;

/// AMQP reply codes with an outcome of their own.
const ACCESS_REFUSED: u16 = 403;
const NOT_ALLOWED: u16 = 530;

/// Logs in over an open connection.
pub(crate) async fn login<S: Stream>(stream: &mut S, broker: &Broker, virtual_host: &str) -> Login {
    match exchanges(stream, broker, virtual_host).await {
        Ok(()) => Login::Ok,
        Err(Stop::Closed(code, text)) => rejection(code, &text, broker),
        Err(Stop::NotAmqp) => Login::NotAmqp,
        Err(Stop::Io(cause)) if cause.kind() == io::ErrorKind::UnexpectedEof => {
            Login::Unreachable("the connection was closed during the login".to_owned())
        }
        Err(Stop::Io(cause)) => Login::Unreachable(cause.to_string()),
    }
}

/// Logs out; otherwise the broker would log a lost connection for each probe.
pub(super) async fn logout<S: Stream>(stream: &mut S) {
    let arguments = [200_u16.to_be_bytes().to_vec(), wire::short_text("bye"), vec![0; 4]].concat();
    if wire::write(stream, method::CLOSE, &arguments).await.is_ok() {
        // The login has succeeded, whatever the response is.
        let _ = wire::read(stream).await;
    }
}

/// Why a login stopped.
enum Stop {
    Closed(u16, String),
    NotAmqp,
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(it: io::Error) -> Self {
        Self::Io(it)
    }
}

impl From<ReadFault> for Stop {
    fn from(it: ReadFault) -> Self {
        match it {
            ReadFault::Io(cause) => Self::Io(cause),
            ReadFault::NotAmqp => Self::NotAmqp,
        }
    }
}

async fn exchanges<S: Stream>(
    stream: &mut S,
    broker: &Broker,
    virtual_host: &str,
) -> Result<(), Stop> {
    stream.write_all(wire::PREAMBLE).await?;
    stream.flush().await?;
    let mut start = expect(stream, method::START).await?;
    if !offers_plain(&mut start) {
        return Err(Stop::NotAmqp);
    }
    wire::write(stream, method::START_OK, &start_ok(broker)).await?;
    let mut tune = expect(stream, method::TUNE).await?;
    let tune_ok = tune_ok(&mut tune).ok_or(Stop::NotAmqp)?;
    wire::write(stream, method::TUNE_OK, &tune_ok).await?;
    // Two reserved arguments follow the virtual host.
    let open = [wire::short_text(virtual_host), vec![0, 0]].concat();
    wire::write(stream, method::OPEN, &open).await?;
    expect(stream, method::OPEN_OK).await?;
    Ok(())
}

async fn expect<S: Stream>(stream: &mut S, id: (u16, u16)) -> Result<Arguments, Stop> {
    let Method { id: heard, mut arguments } = wire::read(stream).await?;
    if heard == id {
        return Ok(arguments);
    }
    if heard != method::CLOSE {
        return Err(Stop::NotAmqp);
    }
    match (arguments.u16(), arguments.short_text()) {
        (Some(code), Some(text)) => Err(Stop::Closed(code, text)),
        _ => Err(Stop::NotAmqp),
    }
}

fn offers_plain(start: &mut Arguments) -> bool {
    let version = (start.u8(), start.u8());
    // The server's properties precede the mechanisms.
    let has_properties = start.long().is_some();
    let mechanisms = start.long().unwrap_or_default();
    version == (Some(0), Some(9))
        && has_properties
        && mechanisms.split(|it| *it == b' ').any(|it| it == b"PLAIN")
}

fn start_ok(broker: &Broker) -> Vec<u8> {
    // The broker then reports a wrong password instead of closing the connection.
    let capabilities = [wire::short_text("authentication_failure_close"), b"t\x01".to_vec()];
    let properties = [
        wire::short_text("product"),
        b"S".to_vec(),
        wire::long(b"nova-operator"),
        wire::short_text("capabilities"),
        b"F".to_vec(),
        wire::long(&capabilities.concat()),
    ];
    let response = format!("\0{}\0{}", broker.user, broker.password);
    [
        wire::long(&properties.concat()),
        wire::short_text("PLAIN"),
        wire::long(response.as_bytes()),
        wire::short_text("en_US"),
    ]
    .concat()
}

/// Returns the broker's own limits, without a heartbeat; `None` when the frame is too short.
fn tune_ok(tune: &mut Arguments) -> Option<Vec<u8>> {
    let (channels, frame) = (tune.u16()?, tune.u32()?);
    Some([&channels.to_be_bytes()[..], &frame.to_be_bytes(), &[0, 0]].concat())
}

fn rejection(code: u16, text: &str, broker: &Broker) -> Login {
    match code {
        ACCESS_REFUSED => Login::AccessRefused,
        NOT_ALLOWED if text.contains("not found") => Login::VhostMissing,
        NOT_ALLOWED if text.contains("refused") => Login::VhostRefused,
        _ => Login::Refused(code, harmless(text, broker)),
    }
}

/// Returns the broker's text, unless it contains the password.
fn harmless(text: &str, broker: &Broker) -> String {
    let reported: String = printable(text).chars().filter(|it| *it != '\n').collect();
    // Characters that are removed may have been inside the password.
    if text.contains(&broker.password) || reported.contains(&printable(&broker.password)) {
        return "(its text is withheld, because it repeats the password)".to_owned();
    }
    reported.chars().take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brokers_words_hold_neither_the_password_nor_what_a_terminal_obeys() {
        let broker = Broker {
            host: "h".into(),
            port: 5672,
            user: "nova".into(),
            password: "hunter2".into(),
        };
        let reported = |text: &str| {
            let Login::Refused(541, reported) = rejection(541, text, &broker) else {
                panic!("{text:?}")
            };
            reported
        };
        assert_eq!(reported("no \u{1b}[2J\r\nmemory\u{202e}"), "no [2Jmemory");
        for text in ["x hunter2", "x hun\u{1b}ter2", "x hunt\u{200e}er2"] {
            assert!(reported(text).starts_with("(its text is withheld"), "{text:?}");
        }
    }
}
