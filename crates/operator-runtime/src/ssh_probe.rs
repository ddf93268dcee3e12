//! Probes whether an SSH server answers at an address: rarely, concurrently, with a short timeout.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// How long a result is kept before the address is probed again.
pub const PAUSE: Duration = Duration::from_secs(10);
/// Time limit of one probe; all probes of a call run concurrently.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of probes per call; the rest wait for a later call.
const MAX_PROBES: usize = 100;
/// How long the result of an address that was not probed again is kept.
const FORGET: Duration = Duration::from_mins(5);
/// Prefix of an SSH server's identification line, which other lines may precede (RFC 4253, 4.2).
const BANNER: &[u8] = b"SSH-";
/// Maximum number of bytes that are read of a server's greeting.
const LIMIT: usize = 4096;

/// Cached results by address.
pub struct SshProbe {
    known: Mutex<BTreeMap<String, ProbeResult>>,
    /// Time limit of one probe.
    patience: Duration,
}

impl Default for SshProbe {
    fn default() -> Self {
        Self { known: Mutex::default(), patience: PATIENCE }
    }
}

#[derive(Clone, Copy)]
struct ProbeResult {
    at: Instant,
    answers: bool,
}

impl SshProbe {
    /// Returns those of the addresses, each `host:port`, at which an SSH server identified itself.
    ///
    /// # Guarantees
    /// Takes at most two seconds, and probes no server more often than every ten seconds.
    ///
    /// # Caveats
    /// A server that the operator's pod cannot reach counts as not answering, even if others reach
    /// it.
    pub async fn answering(&self, addresses: &BTreeSet<String>) -> BTreeSet<String> {
        let due = self.due(addresses, Instant::now());
        let answers = join_all(due.iter().map(|it| timeout(self.patience, greets(it)))).await;
        let mut known = self.known.lock();
        let at = Instant::now();
        for (address, answers) in due.into_iter().zip(answers) {
            known.insert(address, ProbeResult { at, answers: answers.unwrap_or(false) });
        }
        let answers = |it: &&String| known.get(*it).is_some_and(|it| it.answers);
        addresses.iter().filter(answers).cloned().collect()
    }

    /// Returns the addresses to probe now, the longest waiting first.
    fn due(&self, addresses: &BTreeSet<String>, now: Instant) -> Vec<String> {
        let mut known = self.known.lock();
        known.retain(|_, it| now.duration_since(it.at) < FORGET);
        let asked = |it: &String| known.get(it).map(|it| it.at);
        let is_due = |it: &&String| asked(it).is_none_or(|it| now.duration_since(it) >= PAUSE);
        let mut due: Vec<String> = addresses.iter().filter(is_due).cloned().collect();
        due.sort_by_key(asked);
        due.truncate(MAX_PROBES);
        due
    }
}

async fn greets(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let Ok(port) = port.parse::<u16>() else { return false };
    let Ok(stream) = TcpStream::connect((host, port)).await else { return false };
    let mut said = [0; LIMIT];
    let mut n_said = 0;
    while n_said < LIMIT && stream.readable().await.is_ok() {
        match stream.try_read(&mut said[n_said..]) {
            Ok(0) => return false,
            Ok(n_read) => n_said += n_read,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return false,
        }
        let mut lines = said[..n_said].split(|it| *it == b'\n');
        if lines.any(|it| it.starts_with(BANNER)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    /// Starts a server that sends these words to each client and counts the connections.
    async fn server(words: &'static [&'static str]) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let n_asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&n_asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                for part in words {
                    let _ = stream.write_all(part.as_bytes()).await;
                    let _ = stream.flush().await;
                }
            }
        });
        (address, n_asked)
    }

    /// Creates a probe that waits so long that a server which answers is never too slow for it.
    fn patient() -> SshProbe {
        SshProbe { patience: Duration::from_mins(1), ..SshProbe::default() }
    }

    async fn answering(addresses: &[&str]) -> BTreeSet<String> {
        let all = addresses.iter().map(|it| (*it).to_owned()).collect();
        patient().answering(&all).await
    }

    #[tokio::test]
    async fn a_server_answers_by_the_words_of_ssh_alone() {
        let (plain, _) = server(&["SSH-2.0-OpenSSH_9.2\r\n"]).await;
        let (wordy, _) = server(&["welcome\r\nto SSH-land\r\n", "SS", "H-2.0-x\r\n"]).await;
        let (other, _) = server(&["220 mail ESMTP not SSH-2.0\r\n"]).await;
        let (silent, _) = server(&[]).await;
        let closed = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();
        let found = answering(&[&plain, &wordy, &other, &silent, &closed.to_string(), "x"]).await;
        assert_eq!(found, BTreeSet::from([plain, wordy]));
    }

    #[tokio::test]
    async fn nobody_is_asked_again_before_the_pause_is_over() {
        let (address, n_asked) = server(&["SSH-2.0-x\r\n"]).await;
        let probe = patient();
        let all = BTreeSet::from([address.clone()]);
        for _ in 0..3 {
            assert_eq!(probe.answering(&all).await, all);
        }
        assert_eq!(n_asked.load(Ordering::SeqCst), 1);
        assert_eq!(probe.due(&all, Instant::now() + PAUSE), [address]);
    }

    #[tokio::test]
    async fn who_waits_longest_is_asked_first_and_not_all_at_once() {
        let probe = SshProbe::default();
        let all: BTreeSet<String> = (0..MAX_PROBES + 5).map(|it| format!("h{it:03}:22")).collect();
        let start = Instant::now();
        let first = probe.due(&all, start);
        assert_eq!(first.len(), MAX_PROBES);
        for address in first {
            probe.known.lock().insert(address, ProbeResult { at: start, answers: false });
        }
        let rest: Vec<String> =
            (MAX_PROBES..MAX_PROBES + 5).map(|it| format!("h{it:03}:22")).collect();
        assert_eq!(probe.due(&all, start), rest);
        assert_eq!(probe.due(&all, start + PAUSE)[..5], rest);
    }
}
