//! A fake RabbitMQ limited to the AMQP 0-9-1 login: one user, one virtual host, and RabbitMQ's own
//! rejection texts.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::ports;

/// Method ids of class 10, `connection`.
const START: u8 = 10;
const START_OK: u8 = 11;
const TUNE: u8 = 30;
const TUNE_OK: u8 = 31;
const OPEN: u8 = 40;
const OPEN_OK: u8 = 41;
const CLOSE: u8 = 50;
const CLOSE_OK: u8 = 51;
const FRAME_END: u8 = 0xce;
/// Upper bound of a frame's size, far above any frame of a login.
const LARGEST: u32 = 128 * 1024;

/// A fake message broker on a port of the loopback address.
#[derive(Clone, Debug)]
pub struct Broker {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
}

#[derive(Debug)]
struct State {
    login: Login,
    server: Option<JoinHandle<()>>,
}

/// The accepted credentials and virtual host.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Login {
    user: String,
    password: String,
    virtual_host: String,
}

impl Broker {
    /// Starts a broker for one user and one virtual host.
    pub async fn start(user: &str, password: &str, virtual_host: &str) -> Result<Self> {
        let [user, password, virtual_host] = [user, password, virtual_host].map(str::to_owned);
        let state = State { login: Login { user, password, virtual_host }, server: None };
        let (address, listener) = ports::listener().await?;
        let broker = Self { state: Arc::new(Mutex::new(state)), address };
        broker.serve_at(listener);
        Ok(broker)
    }

    /// Returns its `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Lets another user in from now on, with the same password, and the former one no more.
    pub fn set_user(&self, user: &str) {
        user.clone_into(&mut self.state().login.user);
    }

    /// Returns the URL with which nova logs in.
    pub fn transport_url(&self) -> String {
        let Login { user, password, virtual_host } = self.state().login.clone();
        format!("rabbit://{user}:{password}@{}/{virtual_host}", self.address)
    }

    /// Changes the user's password.
    pub fn set_password(&self, password: &str) {
        password.clone_into(&mut self.state().login.password);
    }

    /// Stops listening: connections are refused.
    pub async fn stop(&self) {
        let server = self.state().server.take();
        if let Some(server) = server {
            server.abort();
            // The listener is dropped with its task.
            let _ = server.await;
        }
    }

    /// Starts listening again.
    pub async fn listen(&self) -> Result<()> {
        self.serve_at(TcpListener::bind(self.address).await.context("listen as a broker")?);
        Ok(())
    }

    fn serve_at(&self, listener: TcpListener) {
        let broker = self.clone();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let login = broker.state().login.clone();
                // A client that disconnects early is not an error of the broker.
                tokio::spawn(async move { drop(serve(stream, &login).await) });
            }
        });
        self.state().server = Some(server);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Serves one login until the client closes the connection.
async fn serve(mut stream: TcpStream, login: &Login) -> Result<()> {
    let mut preamble = [0; 8];
    stream.read_exact(&mut preamble).await?;
    ensure!(&preamble == b"AMQP\0\0\x09\x01", "another protocol");
    let start = [&[0, 9][..], &long(b""), &long(b"AMQPLAIN PLAIN"), &long(b"en_US")].concat();
    write(&mut stream, START, &start).await?;
    let answer = expect(&mut stream, START_OK).await?;
    let response = format!("\0{}\0{}", login.user, login.password);
    if !has(&answer, &long(response.as_bytes())) {
        let words = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For \
                     details see the broker logfile.";
        return close(&mut stream, 403, words).await;
    }
    write(&mut stream, TUNE, &[7, 255, 0, 2, 0, 0, 0, 60]).await?;
    expect(&mut stream, TUNE_OK).await?;
    let open = expect(&mut stream, OPEN).await?;
    let wanted = open.get(1..1 + usize::from(*open.first().context("no virtual host")?));
    if wanted != Some(login.virtual_host.as_bytes()) {
        let name = String::from_utf8_lossy(wanted.unwrap_or_default()).into_owned();
        return close(&mut stream, 530, &format!("NOT_ALLOWED - vhost {name} not found")).await;
    }
    write(&mut stream, OPEN_OK, &[0]).await?;
    expect(&mut stream, CLOSE).await?;
    write(&mut stream, CLOSE_OK, &[]).await
}

async fn close(stream: &mut TcpStream, code: u16, words: &str) -> Result<()> {
    let length = u8::try_from(words.len())?;
    let arguments = [&code.to_be_bytes()[..], &[length], words.as_bytes(), &[0; 4]].concat();
    write(stream, CLOSE, &arguments).await?;
    expect(stream, CLOSE_OK).await.map(drop)
}

/// Encodes a long string.
fn long(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], body].concat()
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|it| it == part)
}

async fn write(stream: &mut TcpStream, method: u8, arguments: &[u8]) -> Result<()> {
    let size = u32::try_from(arguments.len() + 4)?.to_be_bytes();
    let frame = [&[1, 0, 0][..], &size, &[0, 10, 0, method], arguments, &[FRAME_END]].concat();
    Ok(stream.write_all(&frame).await?)
}

/// Reads the next method, which must be `method`, and returns its arguments.
async fn expect(stream: &mut TcpStream, method: u8) -> Result<Vec<u8>> {
    let mut head = [0; 7];
    stream.read_exact(&mut head).await?;
    let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
    ensure!((4..LARGEST).contains(&size), "a frame of {size} bytes");
    let mut payload = vec![0; usize::try_from(size)? + 1];
    stream.read_exact(&mut payload).await?;
    ensure!(payload.pop() == Some(FRAME_END), "no end of a frame");
    ensure!(payload.starts_with(&[0, 10, 0, method]), "another method than {method}");
    Ok(payload.split_off(4))
}
