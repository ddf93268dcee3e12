//! Frames and methods of AMQP 0-9-1, as far as a login needs them.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Class and method ids of a login.
pub(super) mod method {
    pub(crate) const START: (u16, u16) = (10, 10);
    pub(crate) const START_OK: (u16, u16) = (10, 11);
    pub(crate) const TUNE: (u16, u16) = (10, 30);
    pub(crate) const TUNE_OK: (u16, u16) = (10, 31);
    pub(crate) const OPEN: (u16, u16) = (10, 40);
    pub(crate) const OPEN_OK: (u16, u16) = (10, 41);
    pub(crate) const CLOSE: (u16, u16) = (10, 50);
}

/// The first bytes that a client sends: the protocol and its version.
pub(super) const PREAMBLE: &[u8; 8] = b"AMQP\x00\x00\x09\x01";

const METHOD_FRAME: u8 = 1;
const HEARTBEAT_FRAME: u8 = 8;
const FRAME_END: u8 = 0xce;

/// Far above any frame of a login: a server that announces more is not a broker.
const LARGEST_FRAME: u32 = 128 * 1024;

/// One method that the broker sent.
pub(super) struct Method {
    /// Class and method.
    pub(super) id: (u16, u16),
    /// The arguments, not parsed yet.
    pub(super) arguments: Arguments,
}

/// Why no method could be read.
pub(super) enum ReadFault {
    /// The connection failed.
    Io(io::Error),
    /// The bytes are not frames of AMQP 0-9-1.
    NotAmqp,
}

impl From<io::Error> for ReadFault {
    fn from(it: io::Error) -> Self {
        Self::Io(it)
    }
}

/// Reads up to the next method, skipping heartbeats.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Method, ReadFault> {
    loop {
        let kind = stream.read_u8().await?;
        // Checked before the rest is awaited: a server of another protocol may send only few bytes.
        if !matches!(kind, METHOD_FRAME | HEARTBEAT_FRAME) {
            return Err(ReadFault::NotAmqp);
        }
        let channel = stream.read_u16().await?;
        let size = stream.read_u32().await?;
        if channel != 0 || size > LARGEST_FRAME {
            return Err(ReadFault::NotAmqp);
        }
        let mut payload = vec![0; size as usize];
        stream.read_exact(&mut payload).await?;
        if stream.read_u8().await? != FRAME_END {
            return Err(ReadFault::NotAmqp);
        }
        if kind == METHOD_FRAME {
            return method(payload).ok_or(ReadFault::NotAmqp);
        }
    }
}

fn method(payload: Vec<u8>) -> Option<Method> {
    let mut arguments = Arguments { bytes: payload, at: 0 };
    let id = (arguments.u16()?, arguments.u16()?);
    Some(Method { id, arguments })
}

/// Sends one method on channel 0.
pub(super) async fn write<S: AsyncWrite + Unpin>(
    stream: &mut S,
    id: (u16, u16),
    arguments: &[u8],
) -> io::Result<()> {
    let size = u32::try_from(arguments.len() + 4).map_err(io::Error::other)?;
    let mut frame = vec![METHOD_FRAME, 0, 0];
    frame.extend(size.to_be_bytes());
    frame.extend(id.0.to_be_bytes());
    frame.extend(id.1.to_be_bytes());
    frame.extend(arguments);
    frame.push(FRAME_END);
    stream.write_all(&frame).await?;
    stream.flush().await
}

/// The arguments of a method, read one after another; each read returns `None` when they end too
/// early.
pub(super) struct Arguments {
    bytes: Vec<u8>,
    at: usize,
}

impl Arguments {
    fn take(&mut self, n_bytes: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(n_bytes)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|it| it[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    /// Reads a short string: up to 255 bytes.
    pub(super) fn short_text(&mut self) -> Option<String> {
        let n_bytes = usize::from(self.u8()?);
        Some(String::from_utf8_lossy(self.take(n_bytes)?).into_owned())
    }

    /// Reads a long string; a table has the same encoding around its body.
    pub(super) fn long(&mut self) -> Option<&[u8]> {
        let n_bytes = self.u32()? as usize;
        self.take(n_bytes)
    }
}

/// Encodes a short string; bytes after the first 255 are dropped.
pub(super) fn short_text(text: &str) -> Vec<u8> {
    let text = &text.as_bytes()[..text.len().min(255)];
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    [&[length], text].concat()
}

/// Encodes a long string, or the body of a table.
pub(super) fn long(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), body].concat()
}
