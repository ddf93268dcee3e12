//! The lab's OpenStack control plane: real services, from the templates in `lab/controlplane`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{images, lab, paths, sh};

/// The namespace of the OpenStack services.
pub(crate) const NAMESPACE: &str = "openstack";
/// The Secret with generated values, so that a second `up` changes nothing.
const GENERATED: &str = "control-plane-generated";

/// Cells with computes: short name and the fixed address of the message bus.
const CELLS: &[(&str, &str)] = &[("cell1", "10.96.10.21"), ("cell2", "10.96.10.22")];
/// The cell without computes, whose message bus the API and the scheduler use.
const CELL0: (&str, &str) = ("cell0", "10.96.10.20");
const PASSWORDS: &[&str] = &[
    "admin",
    "nova",
    "placement",
    "keystone-database",
    "placement-database",
    "api-database",
    "cell1-database",
    "cell2-database",
    "cell0-message-bus",
    "cell1-message-bus",
    "cell2-message-bus",
    "ironic",
    "ironic-database",
    "glance",
    "glance-database",
    "neutron",
    "neutron-database",
    "metadata-secret",
];
const FERNET_KEYS: &[&str] = &["fernet-first", "fernet-next"];

/// The timeout for each part.
const DEADLINE: Duration = Duration::from_mins(20);

/// Template name → value.
pub(crate) type Values = BTreeMap<String, String>;

/// Builds the control plane's image if needed, then starts the control plane.
pub(crate) fn main() -> Result<()> {
    let image = images::for_lab_only("openstack")?;
    up(&lab::env(), &image)
}

/// Applies the control plane and waits until each part is ready.
///
/// # Guarantees
///
/// Passwords are generated once; a second call with the same image restarts nothing.
pub(crate) fn up(env: &lab::Env, image: &str) -> Result<()> {
    let mut values = generated(env)?;
    values.insert("image".to_owned(), image.to_owned());
    values.insert("state".to_owned(), paths::state().display().to_string());
    sh::step("apply the OpenStack control plane", || {
        let secrets = secrets(&values)?;
        // A pod does not notice changed inputs that it has read already: a new hash makes a new
        // pod.
        values.insert("inputs".to_owned(), sh::sha256(secrets.as_bytes())[..12].to_owned());
        apply(env, &secrets)?;
        apply(env, &parts(&values)?)
    })?;
    let mut waiting = vec!["mariadb".to_owned(), "keystone".to_owned(), "placement".to_owned()];
    for (cell, _) in all_cells() {
        waiting.extend([format!("rabbitmq-{cell}"), format!("nova-conductor-{cell}")]);
    }
    waiting.extend(["nova-manage", "nova-api", "nova-scheduler"].map(str::to_owned));
    for part in waiting {
        sh::step(&format!("wait for {part}"), || ready(env, &part))?;
    }
    Ok(())
}

fn secrets(values: &Values) -> Result<String> {
    let mut texts = vec![template("secrets", values)?];
    for (cell, rabbitmq) in CELLS {
        texts.push(template("cell-secrets", &of_cell(values, cell, rabbitmq))?);
    }
    for (cell, rabbitmq) in all_cells() {
        texts.push(template("rabbitmq-secrets", &of_cell(values, cell, rabbitmq))?);
    }
    Ok(texts.join("\n---\n"))
}

fn parts(values: &Values) -> Result<String> {
    let mut texts = Vec::new();
    for name in ["mariadb", "keystone", "placement", "nova-manage", "nova-api"] {
        texts.push(template(name, values)?);
    }
    for (cell, rabbitmq) in all_cells() {
        let values = of_cell(values, cell, rabbitmq);
        texts.extend([template("rabbitmq", &values)?, template("conductor", &values)?]);
    }
    Ok(texts.join("\n---\n"))
}

fn all_cells() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    std::iter::once(&CELL0).chain(CELLS)
}

/// Returns the values, with those of one cell also under names without the cell.
fn of_cell(values: &Values, cell: &str, rabbitmq: &str) -> Values {
    let mut values = values.clone();
    for it in ["database", "message-bus"] {
        if let Some(value) = values.get(&format!("{cell}-{it}")).cloned() {
            values.insert(format!("cell-{it}"), value);
        }
    }
    values.insert("cell".to_owned(), cell.to_owned());
    values.insert("rabbitmq".to_owned(), rabbitmq.to_owned());
    values
}

/// Renders a template of `lab/controlplane`; a name without a value is an error.
pub(crate) fn template(name: &str, values: &Values) -> Result<String> {
    let path = paths::repo().join("lab/controlplane").join(name).with_extension("yaml");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    fill(&text, values).with_context(|| format!("{}", path.display()))
}

/// Renders templates of a directory in `lab` for parts that join the control plane: `{{inputs}}` is
/// a hash of them all, because a pod does not notice changed inputs that it has read already.
pub(crate) fn joining(folder: &str, names: &[&str], values: &Values) -> Result<String> {
    let mut texts = Vec::new();
    for name in names {
        let path = paths::repo().join("lab").join(folder).join(name).with_extension("yaml");
        texts.push(fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?);
    }
    let text = texts.join("\n---\n");
    let mut values = values.clone();
    values.insert("inputs".to_owned(), String::new());
    let inputs = sh::sha256(fill(&text, &values)?.as_bytes())[..12].to_owned();
    values.insert("inputs".to_owned(), inputs);
    fill(&text, &values).with_context(|| format!("lab/{folder}"))
}

/// Creates the database and the user of a part that not every control plane has.
pub(crate) fn make_database(env: &lab::Env, name: &str, password: &str) -> Result<()> {
    let statements = format!(
        "CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb3;
         CREATE USER IF NOT EXISTS {name}@'%';
         ALTER USER {name}@'%' IDENTIFIED BY '{password}';
         GRANT ALL ON {name}.* TO {name}@'%';"
    );
    let mut exec = env.kubectl();
    exec.args(["-n", NAMESPACE, "exec", "-i", "deployment/mariadb", "-c", "mariadb", "--"]);
    sh::run_with_input(exec.arg("mariadb"), statements.as_bytes()).map(drop)
}

/// Replaces each `{{name}}` in a text by its value; a name without a value is an error.
pub(crate) fn fill(text: &str, values: &Values) -> Result<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").context("{{ without }}")?;
        let Some(value) = values.get(name) else { bail!("no value for {name}") };
        filled += before;
        filled += value;
        rest = after;
    }
    Ok(filled + rest)
}

/// Applies manifests with server-side apply.
pub(crate) fn apply(env: &lab::Env, manifests: &str) -> Result<()> {
    let mut apply = env.kubectl();
    // Server-side apply stores no copy of a password in an annotation.
    apply.args(["apply", "--server-side", "--force-conflicts", "-f", "-"]);
    sh::run_with_input(&mut apply, manifests.as_bytes()).map(drop)
}

/// Waits until a part is ready; fails early if its container keeps restarting.
pub(crate) fn ready(env: &lab::Env, part: &str) -> Result<()> {
    let deployment = format!("deployment/{part}");
    let end = Instant::now() + DEADLINE;
    loop {
        let mut rollout = env.kubectl();
        rollout.args(["-n", NAMESPACE, "rollout", "status", "--timeout", "10s", &deployment]);
        let Err(error) = sh::run(&mut rollout) else { return Ok(()) };
        if Instant::now() > end || restarts(env, part)? > 2 {
            let said = last_words(env, part);
            return Err(error.context(format!("{part} does not become ready:\n{said}")));
        }
    }
}

/// Returns the number of restarts of the part's containers.
fn restarts(env: &lab::Env, part: &str) -> Result<u32> {
    let mut get = env.kubectl();
    get.args(["-n", NAMESPACE, "get", "pods", "-l", &format!("app={part}"), "-o"]).arg(
        "jsonpath={.items[*].status.initContainerStatuses[*].restartCount} \
         {.items[*].status.containerStatuses[*].restartCount}",
    );
    let counts = sh::run(&mut get)?;
    Ok(counts.split_whitespace().filter_map(|it| it.parse::<u32>().ok()).sum())
}

fn last_words(env: &lab::Env, part: &str) -> String {
    let pods = format!("app={part}");
    let show = |container: &str| {
        let mut logs = env.kubectl();
        logs.args(["-n", NAMESPACE, "logs", "--prefix", "--tail=15", container, "-l", &pods]);
        sh::run(&mut logs).unwrap_or_default()
    };
    let all = show("--all-containers");
    // Logs of all containers are not available while the first one still runs.
    if all.is_empty() { show("--container=database") } else { all }
}

/// Returns the passwords and keys, read from the Secret or generated.
pub(crate) fn generated(env: &lab::Env) -> Result<Values> {
    let mut get = env.kubectl();
    get.args(["-n", NAMESPACE, "get", "secret", GENERATED, "--ignore-not-found"]).args([
        "-o",
        "go-template={{range $k, $v := .data}}{{$k}}={{base64decode $v}}{{\"\\n\"}}{{end}}",
    ]);
    let mut values: Values = sh::run(&mut get)?
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let known = values.len();
    for name in PASSWORDS {
        if !values.contains_key(*name) {
            values.insert((*name).to_owned(), random(24)?);
        }
    }
    for name in FERNET_KEYS {
        if !values.contains_key(*name) {
            // 32 bytes in base64 are 43 characters, the last with two zero bits, and padding.
            values.insert((*name).to_owned(), format!("{}A=", random(42)?));
        }
    }
    if values.len() != known {
        let secret = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": GENERATED, "namespace": NAMESPACE},
            "stringData": values,
        });
        apply(env, &secret.to_string())?;
    }
    Ok(values)
}

/// Returns random characters that need no quoting in a URL, in SQL, in an INI file or as an
/// argument.
fn random(letters: usize) -> Result<String> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut bytes = vec![0; letters];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|it| char::from(ALPHABET[usize::from(*it) % ALPHABET.len()])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_values() -> Values {
        let names = PASSWORDS.iter().chain(FERNET_KEYS).chain(&["image", "state", "inputs"]);
        names.map(|it| ((*it).to_owned(), format!("<{it}>"))).collect()
    }

    #[test]
    fn every_template_finds_its_values() {
        let text = secrets(&all_values()).unwrap() + &parts(&all_values()).unwrap();
        assert!(text.contains("nova-cell2:<cell2-message-bus>@10.96.10.22:5672/nova-cell2"));
        assert!(!text.contains("{{"));
    }

    #[test]
    fn a_name_without_a_value_is_an_error() {
        assert!(fill("a {{b}}", &Values::new()).is_err());
        assert_eq!(fill("a {b} c", &Values::new()).unwrap(), "a {b} c");
    }

    #[test]
    fn passwords_differ_and_need_no_quotes() {
        let (one, two) = (random(24).unwrap(), random(24).unwrap());
        assert_ne!(one, two);
        assert!(one.chars().all(|it| it.is_ascii_alphanumeric()));
    }
}
