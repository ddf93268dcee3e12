//! Checks the protocol answers of a message bus, a Keystone and a nova: the real ones of the lab, and
//! the fakes of the simulated cluster.

mod nova;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub use nova::{
    CONSUMER, GUESTS, NovaStage, RECORDS, STAGE_PROGRAM, Script, nova, write_nova_answers,
};

/// Method numbers of AMQP's class 10, `connection`.
mod method {
    pub(super) const START: u8 = 10;
    pub(super) const START_OK: u8 = 11;
    pub(super) const TUNE: u8 = 30;
    pub(super) const TUNE_OK: u8 = 31;
    pub(super) const OPEN: u8 = 40;
    pub(super) const OPEN_OK: u8 = 41;
    pub(super) const CLOSE: u8 = 50;
    pub(super) const CLOSE_OK: u8 = 51;
}

const FRAME_END: u8 = 0xce;
const WRONG: &str = "not-the-password";

/// The login data for one broker.
#[derive(Clone, Debug)]
pub struct Bus {
    /// `host:port`.
    pub address: String,
    /// The user name.
    pub user: String,
    /// The password.
    pub password: String,
    /// The virtual host to open.
    pub virtual_host: String,
}

/// The result of a login.
#[derive(Debug, Eq, PartialEq)]
enum Login {
    LetIn,
    Refused(u16, String),
}

impl Bus {
    /// Parses a `transport_url` with one broker.
    pub fn of(transport_url: &str) -> Result<Self> {
        let rest = transport_url.strip_prefix("rabbit://").context("no rabbit://")?;
        let (login, rest) = rest.rsplit_once('@').context("no user")?;
        let (user, password) = login.split_once(':').context("no password")?;
        let (address, virtual_host) = rest.split_once('/').context("no virtual host")?;
        let [address, user, password, virtual_host] =
            [address, user, password, virtual_host].map(str::to_owned);
        Ok(Self { address, user, password, virtual_host })
    }
}

/// Asserts the behaviour of a broker that operators rely on: it accepts this login, and rejects
/// each one that differs in one field with RabbitMQ's message.
pub async fn broker(bus: &Bus) -> Result<()> {
    let let_in = login(bus).await.context("the right login")?;
    ensure!(let_in == Login::LetIn, "the right login: {let_in:?}");
    let words = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details \
                 see the broker logfile.";
    let refused = Login::Refused(403, words.to_owned());
    let nowhere = "nobody-has-such-a-virtual-host";
    let missing = Login::Refused(530, format!("NOT_ALLOWED - vhost {nowhere} not found"));
    for (what, other, expected) in [
        ("a wrong password", Bus { password: WRONG.to_owned(), ..bus.clone() }, &refused),
        ("an unknown user", Bus { user: "nobody".to_owned(), ..bus.clone() }, &refused),
        (
            "a missing virtual host",
            Bus { virtual_host: nowhere.to_owned(), ..bus.clone() },
            &missing,
        ),
    ] {
        let found = login(&other).await.context(what)?;
        ensure!(found == *expected, "{what}: {found:?}");
    }
    Ok(())
}

/// Logs in, and out again if that succeeds.
async fn login(bus: &Bus) -> Result<Login> {
    let mut stream = TcpStream::connect(&bus.address).await?;
    stream.write_all(b"AMQP\0\0\x09\x01").await?;
    let (start, offered) = read(&mut stream).await?;
    ensure!(start == method::START && offered.starts_with(&[0, 9]), "no AMQP 0-9: {start}");
    ensure!(offered.windows(5).any(|it| it == b"PLAIN"), "no passwords");
    write(&mut stream, method::START_OK, &start_ok(bus)).await?;
    let (tune, limits) = match read(&mut stream).await? {
        (method::CLOSE, arguments) => return refusal(&arguments),
        other => other,
    };
    ensure!(tune == method::TUNE && limits.len() == 8, "no limits: {tune} {limits:?}");
    write(&mut stream, method::TUNE_OK, &[&limits[..6], &[0, 0]].concat()).await?;
    write(&mut stream, method::OPEN, &[short(&bus.virtual_host)?, vec![0, 0]].concat()).await?;
    match read(&mut stream).await? {
        (method::OPEN_OK, _) => {}
        (method::CLOSE, arguments) => return refusal(&arguments),
        (other, _) => bail!("method {other} instead of open-ok"),
    }
    let bye = [200_u16.to_be_bytes().to_vec(), short("bye")?, vec![0; 4]].concat();
    write(&mut stream, method::CLOSE, &bye).await?;
    let (answer, _) = read(&mut stream).await?;
    ensure!(answer == method::CLOSE_OK, "method {answer} instead of close-ok");
    Ok(Login::LetIn)
}

/// Announces the capability to be notified of a wrong password, as operators do.
fn start_ok(bus: &Bus) -> Vec<u8> {
    let capabilities = b"\x1cauthentication_failure_closet\x01";
    let properties = [b"\x0ccapabilitiesF".to_vec(), long(capabilities)].concat();
    let response = format!("\0{}\0{}", bus.user, bus.password);
    let (mechanism, locale) = (b"\x05PLAIN".to_vec(), b"\x05en_US".to_vec());
    [long(&properties), mechanism, long(response.as_bytes()), locale].concat()
}

fn refusal(arguments: &[u8]) -> Result<Login> {
    let (code, rest) = arguments.split_first_chunk::<2>().context("no code")?;
    let (length, rest) = rest.split_first().context("no words")?;
    let words = rest.get(..usize::from(*length)).context("too few words")?;
    Ok(Login::Refused(u16::from_be_bytes(*code), String::from_utf8_lossy(words).into_owned()))
}

/// Encodes an AMQP short string.
fn short(text: &str) -> Result<Vec<u8>> {
    Ok([&[u8::try_from(text.len())?], text.as_bytes()].concat())
}

/// Encodes an AMQP long string or table.
fn long(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], body].concat()
}

async fn write(stream: &mut TcpStream, method: u8, arguments: &[u8]) -> Result<()> {
    let size = u32::try_from(arguments.len() + 4)?.to_be_bytes();
    let frame = [&[1, 0, 0][..], &size, &[0, 10, 0, method], arguments, &[FRAME_END]].concat();
    Ok(stream.write_all(&frame).await?)
}

/// Reads the next method of class 10 and its arguments.
async fn read(stream: &mut TcpStream) -> Result<(u8, Vec<u8>)> {
    let mut head = [0; 7];
    stream.read_exact(&mut head).await?;
    ensure!(head[..3] == [1, 0, 0], "no method on channel 0: {head:?}");
    let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
    ensure!((4..128 * 1024).contains(&size), "a frame of {size} bytes");
    let mut payload = vec![0; usize::try_from(size)? + 1];
    stream.read_exact(&mut payload).await?;
    ensure!(payload.pop() == Some(FRAME_END), "no end of a frame");
    ensure!(payload.starts_with(&[0, 10, 0]), "another class: {:?}", &payload[..4]);
    Ok((payload[3], payload.split_off(4)))
}

/// Asserts the behaviour of a Keystone with this user that operators and nova's services rely on.
pub async fn keystone(url: &str, user: &str, password: &str) -> Result<()> {
    let (head, body) = ask(url, ("GET /v3", ""), None).await?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
    let version = &body["version"];
    let id = version["id"].as_str().unwrap_or_default();
    ensure!(id.starts_with("v3") && version["status"] == "stable", "{body}");
    let (head, _) = ask(url, ("GET /nobody-serves-this", ""), None).await?;
    ensure!(head.starts_with("HTTP/1.1 404"), "{head}");

    let asked = ("POST /v3/auth/tokens", "");
    let (head, body) = ask(url, asked, Some(&identity(user, password))).await?;
    ensure!(head.starts_with("HTTP/1.1 201"), "{head}");
    let header = |it: &str| it.to_ascii_lowercase().starts_with("x-subject-token: ");
    ensure!(head.lines().any(header), "no token: {head}");
    ensure!(body["token"]["expires_at"].is_string(), "{body}");
    for (user, password) in [(user, WRONG), ("nobody-has-this-name", password)] {
        let (head, body) = ask(url, asked, Some(&identity(user, password))).await?;
        ensure!(head.starts_with("HTTP/1.1 401"), "{head}");
        let message = "The request you have made requires authentication.";
        let expected = json!({ "code": 401, "message": message, "title": "Unauthorized" });
        ensure!(body["error"] == expected, "{body}");
    }
    Ok(())
}

fn identity(user: &str, password: &str) -> Value {
    let user = json!({ "name": user, "password": password, "domain": { "name": "Default" } });
    let identity = json!({ "methods": ["password"], "password": { "user": user } });
    json!({ "auth": { "identity": identity } })
}

/// Sends an HTTP request with its line and further headers, and returns the head and the body of the
/// response; the body is null unless it is JSON.
async fn ask(
    url: &str,
    (line, headers): (&str, &str),
    body: Option<&Value>,
) -> Result<(String, Value)> {
    let host = url.strip_prefix("http://").context("no http://")?.trim_end_matches('/');
    let body = body.map(ToString::to_string).unwrap_or_default();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: {host}\r\n{headers}Accept: application/json\r\nContent-Type: \
         application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(host).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").context("no end of the head")?;
    Ok((head.to_owned(), serde_json::from_str(body).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_url_is_a_login() -> Result<()> {
        let Bus { address, user, password, virtual_host } =
            Bus::of("rabbit://nova-cell1:secret@10.96.10.21:5672/nova-cell1")?;
        let found = [address, user, password, virtual_host];
        assert_eq!(found, ["10.96.10.21:5672", "nova-cell1", "secret", "nova-cell1"]);
        assert!(Bus::of("amqp://a:b@c/d").is_err());
        Ok(())
    }
}
