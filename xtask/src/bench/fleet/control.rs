//! Orders to the simulated cluster, which it takes on a Unix socket.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// How long an order may take: operators that restart read all objects.
const WITHIN: Duration = Duration::from_mins(5);

/// Has an order carried out, and returns the answer.
pub(super) fn order(socket: &Path, order: &str) -> Result<String> {
    let what = || format!("order {order:?} at {}", socket.display());
    let mut stream = UnixStream::connect(socket).with_context(what)?;
    stream.set_read_timeout(Some(WITHIN))?;
    let mut answer = String::new();
    writeln!(stream, "{order}")
        .and_then(|()| stream.read_to_string(&mut answer))
        .with_context(what)?;
    match answer.strip_prefix("ok ") {
        Some(result) => Ok(result.to_owned()),
        None => bail!("{}: {answer}", what()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn an_order_returns_what_follows_ok_and_fails_with_what_else_is_answered() {
        let socket = std::env::temp_dir().join(format!("orders-{}", std::process::id()));
        let listener = UnixListener::bind(&socket).unwrap();
        let ask = |answer: &'static str| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut stream = BufReader::new(listener.accept().unwrap().0);
                    stream.read_line(&mut String::new()).unwrap();
                    stream.get_mut().write_all(answer.as_bytes()).unwrap();
                });
                order(&socket, "restart")
            })
        };
        assert_eq!(ask("ok {}").unwrap(), "{}");
        let error = ask("it does not end").unwrap_err().to_string();
        assert!(error.contains("restart") && error.ends_with(": it does not end"), "{error}");
        std::fs::remove_file(&socket).unwrap();
        assert!(order(&socket, "restart").is_err());
    }
}
