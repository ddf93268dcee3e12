//! Runs programs, prints how long steps take, and waits for conditions.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// The interval at which a silent step prints that it still runs.
const HEARTBEAT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);

/// Runs `work`, and prints its description and duration.
pub(crate) fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("-> {what}");
    let start = Instant::now();
    let (done, finished) = mpsc::channel::<()>();
    let result = std::thread::scope(|scope| {
        scope.spawn(move || {
            while finished.recv_timeout(HEARTBEAT) == Err(mpsc::RecvTimeoutError::Timeout) {
                println!("   … {what}: {} s so far", start.elapsed().as_secs());
            }
        });
        let result = work();
        drop(done);
        result
    });
    let seconds = start.elapsed().as_secs_f64();
    match &result {
        Ok(_) => println!("   {what}: done in {seconds:.1} s"),
        Err(_) => println!("   {what}: FAILED after {seconds:.1} s"),
    }
    result.with_context(|| what.to_owned())
}

/// Returns a command of cargo without the variables that `cargo run` sets for this program.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    forget_package(&mut cargo);
    cargo
}

/// Takes the variables that `cargo run` sets for this program from a command that starts cargo.
///
/// ring's build script is run again when one of them changes, and cargo then compiles everything
/// that depends on ring again.
pub(crate) fn forget_package(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|it| it.0.to_str().is_some_and(is_of_package)) {
        command.env_remove(name);
    }
}

/// Whether cargo sets an environment variable for programs of a package.
fn is_of_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// Runs a program to its end and returns what it printed to stdout.
///
/// The error names the command and carries the end of what it printed.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    finish(command, &output)
}

/// Like [`run`], with `input` on stdin.
pub(crate) fn run_with_input(command: &mut Command, input: &[u8]) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    // The program may fill its stdout before it has read all input.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output()
    })?;
    finish(command, &output)
}

/// Whether the program could be started and succeeded; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn finish(command: &Command, output: &std::process::Output) -> Result<String> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = if stderr.trim().is_empty() { &stdout } else { stderr.as_ref() };
        bail!("{} ended with {}:\n{}", shown(command), output.status, tail(said, 30));
    }
    Ok(stdout)
}

/// Returns the command as typed in a shell, shortened.
fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|it| it.to_string_lossy().into_owned()));
    let line = words.join(" ");
    if line.chars().count() > 300 { line.chars().take(300).chain(['…']).collect() } else { line }
}

/// Returns the last `n` lines of `text`.
pub(crate) fn tail(text: &str, n: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

/// Calls `probe` until it succeeds; at the deadline, fails with its last error.
///
/// The probe returns `Ok` when the condition holds, and otherwise the reason as an error.
pub(crate) fn wait_for<T>(
    what: &str,
    deadline: Duration,
    mut probe: impl FnMut() -> Result<T>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        match probe() {
            Ok(answer) => return Ok(answer),
            Err(reason) if start.elapsed() >= deadline => {
                return Err(reason.context(format!("{what}: not within {} s", deadline.as_secs())));
            }
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

/// Returns the body of a plain HTTP GET if the status is 200.
pub(crate) fn http_get(address: &str, path: &str) -> Result<String> {
    let socket: SocketAddr = address.parse().with_context(|| format!("address {address}"))?;
    let mut stream = TcpStream::connect_timeout(&socket, Duration::from_secs(2))
        .with_context(|| format!("cannot connect to {address}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("not an HTTP answer")?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        bail!("{address}{path} answered {status}: {body}");
    }
    Ok(body.to_owned())
}

/// Writes a file and its parent directories if its content differs; returns whether it did.
pub(crate) fn write_if_changed(path: &Path, content: &str) -> Result<bool> {
    if std::fs::read_to_string(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    std::fs::write(path, content).with_context(|| format!("write {}", path.display()))?;
    Ok(true)
}

/// Takes the machine-wide lock `name`; other processes wait.
///
/// The lock is released when the returned file is dropped.
pub(crate) fn lock(name: &str) -> Result<File> {
    let folder = crate::paths::cache();
    std::fs::create_dir_all(&folder)?;
    let file = File::create(folder.join(format!("{name}.lock")))?;
    if file.try_lock().is_err() {
        println!("another run is at work on {name}: waiting for it");
        file.lock().with_context(|| format!("wait for the lock {name}"))?;
    }
    Ok(file)
}

/// Returns the SHA-256 of `data` in hex.
pub(crate) fn sha256(data: &[u8]) -> String {
    format!("{:x}", Sha256::digest(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_says_its_name_and_its_last_words() {
        let error = run(Command::new("sh").args(["-c", "echo broken >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("sh -c") && text.contains("exit status: 3"), "{text}");
        assert!(text.contains("broken"), "{text}");
    }

    #[test]
    fn cargo_gets_the_callers_settings_and_nothing_of_this_package() {
        let of_package = ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_LINKS", "CARGO_PKG_VERSION_PRE"];
        assert!(of_package.iter().all(|it| is_of_package(it)));
        let of_caller = ["CARGO_TARGET_DIR", "CARGO_INCREMENTAL", "CARGO_PROFILE_DEV_DEBUG"];
        assert!(!of_caller.iter().any(|it| is_of_package(it)));
    }

    #[test]
    fn every_command_of_cargo_is_without_them() {
        let files = crate::sources::files("xtask/src", ".rs").unwrap();
        assert!(files.len() > 50, "{files:?}");
        for file in files.iter().filter(|it| !it.ends_with("sh.rs")) {
            let text = std::fs::read_to_string(file).unwrap();
            let starts_it = text.contains("\"cargo\"") || text.contains("env!(\"CARGO\")");
            assert!(!starts_it || text.contains("sh::forget_package("), "{}", file.display());
        }
    }

    #[test]
    fn input_reaches_the_command() {
        let big = "x".repeat(1 << 20);
        assert_eq!(run_with_input(&mut Command::new("cat"), big.as_bytes()).unwrap(), big);
    }

    #[test]
    fn waiting_ends_with_the_last_reason() {
        let mut n_calls = 0;
        let result: Result<()> = wait_for("a thing", Duration::from_millis(250), || {
            n_calls += 1;
            bail!("reason {n_calls}")
        });
        let text = format!("{:#}", result.unwrap_err());
        assert!(n_calls > 1 && text.ends_with(&format!("reason {n_calls}")), "{text}");
        assert_eq!(wait_for("b", Duration::ZERO, || Ok(7)).unwrap(), 7);
    }

    #[test]
    fn the_tail_keeps_the_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }

    #[test]
    fn the_digest_is_sha256_in_hex() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
    }
}
