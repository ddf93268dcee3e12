//! `cargo xtask bench`: measures the cost of the operators and asserts limits.

mod audit;
mod fleet;
mod process;
mod reads;
mod status_age;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use audit::{Audit, Requests};
pub(crate) use fleet::check;
use process::Among;
use serde_json::{Value, json};

use crate::demo::facts::wait_until_ready;
use crate::demo::scene::MAIN;
use crate::{cluster::Choice, controlplane, demo, images, lab, paths, sh};

/// The period without writes after everything is ready.
const REST: Duration = Duration::from_mins(3);
/// How long operators that have just started must request nothing before they are measured.
const STARTED: Duration = Duration::from_secs(10);
/// How long the installed operators take to lead and to read what they need.
const LEADING: Duration = Duration::from_mins(2);
/// The memory limit of an operator.
const MEMORY_MIB: f64 = 20.0;

/// Measure what the operators cost: on the lab after a demo, or with `--nodes` on a simulated cluster.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("simulated").args(["nodes", "check"]))]
pub(crate) struct Args {
    /// Write the counts of this run as the baseline that later runs are compared with.
    #[arg(long)]
    write_baseline: bool,
    /// The audit log of an existing cluster's API server on this machine.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    #[command(flatten)]
    fleet: fleet::Options,
    /// Compare a hundred and three hundred hosts on simulated clusters with the baseline instead.
    #[arg(long)]
    #[arg(conflicts_with_all = ["write_baseline", "audit_log", "kubeconfig", "registry"])]
    check: bool,
    /// Write that baseline.
    #[arg(long, requires = "check")]
    write: bool,
    /// A directory with compiled programs, the operators and `simulated-cluster`; without it the
    /// operators are compiled as users get them, or for `--check` as the tests get them.
    #[arg(long, value_name = "DIR", requires = "simulated")]
    programs: Option<PathBuf>,
    #[command(flatten)]
    cluster: Choice,
}

/// Measures what is asked for, and asserts the limits.
pub(crate) fn main(args: &Args) -> Result<()> {
    let programs = args.programs.as_deref();
    if args.write {
        return check::write(programs);
    }
    if args.check {
        let checked = check::run(programs)?;
        let wrong: Vec<String> = checked.into_iter().flat_map(|it| it.1).collect();
        ensure!(wrong.is_empty(), "limits are exceeded:\n  {}", wrong.join("\n  "));
        println!("All limits hold.");
        return Ok(());
    }
    match args.fleet.fleet() {
        Some(fleet) => fleet::main(fleet, &args.fleet, programs),
        None => measure_main_job(args),
    }
}

/// Redeploys everything, waits at rest, and asserts the limits.
fn measure_main_job(args: &Args) -> Result<()> {
    let mut env = args.cluster.env()?;
    if let Some(path) = &args.audit_log {
        env.audit_log.clone_from(path);
    }
    if env.audit_log.as_os_str().is_empty() {
        bail!("--audit-log must say where the cluster's API server writes its audit log");
    }
    let audit = Audit::of(&env);
    install(&env)?;
    wait_until_ready(&env, &MAIN).context("the bench needs a finished demo: cargo xtask demo")?;
    sh::step("wait until the operators have started", || wait_until_started(&env, &audit))?;
    let (start, first_revision) = (audit.position()?, revision(&env)?);
    let clock = Instant::now();
    sh::step("deploy every service once more", || {
        redeploy(&env)?;
        wait_until_ready(&env, &MAIN)
    })?;
    let (end, last_revision) = (audit.position()?, revision(&env)?);
    let seconds = clock.elapsed().as_secs_f64();
    let work = audit.requests(controlplane::NAMESPACE, start, end)?;
    let rest = sh::step("rest for three minutes", || {
        let from = audit.position()?;
        // A fixed period is measured, so this sleeps instead of waiting for a condition.
        std::thread::sleep(REST);
        audit.requests(controlplane::NAMESPACE, from, audit.position()?)
    })?;
    let processes = process::operators(Among::All)?;
    let report = json!({
        "seconds": seconds,
        "etcdRevisions": last_revision - first_revision,
        "work": work.as_json(),
        "reads": work.reads.as_json(),
        "rest": rest.as_json(),
        "processes": processes.iter().map(|it| (it.name.clone(), it.as_json())).collect::<BTreeMap<_, _>>(),
    });
    write(&paths::target().join("bench/main-job.json"), &report)?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    if args.write_baseline {
        write(&baseline_path(), &json!({ "work": work.as_json() }))?;
    }
    judge(&work, &rest, &processes)
}

/// Installs the operators as released; the lab otherwise runs those of the tests.
fn install(env: &lab::Env) -> Result<()> {
    let images = images::released(env)?;
    demo::install(env, &paths::repo(), &demo::values_of_images(&images, "values-released")?)
}

/// Waits until the installed operators are the leaders and have read all that they read at their
/// start, which is not part of the measured work.
fn wait_until_started(env: &lab::Env, audit: &Audit) -> Result<()> {
    for operator in process::OPERATORS {
        let mut rollout = env.kubectl();
        rollout.args(["-n", demo::OPERATORS, "rollout", "status", "--timeout=1m"]);
        sh::run(rollout.arg(format!("deployment/{operator}")))?;
        sh::wait_for(&format!("{operator} leads"), LEADING, || leads(env, operator))?;
    }
    let mut since = (audit.position()?, Instant::now());
    sh::wait_for("the operators have read everything", LEADING, || {
        let now = audit.position()?;
        let requests = audit.requests(controlplane::NAMESPACE, since.0, now)?.unexpected_at_rest();
        if !requests.is_empty() {
            since = (now, Instant::now());
            bail!("requests of the start: {}", requests.join(", "));
        }
        ensure!(since.1.elapsed() >= STARTED, "the last request was a moment ago");
        Ok(())
    })
}

/// Checks that the Lease of an operator is held by its only pod.
fn leads(env: &lab::Env, operator: &str) -> Result<()> {
    let mut get = env.kubectl();
    get.args(["-n", demo::OPERATORS, "get", "pods", "-o", "name"]);
    let pods = sh::run(get.args(["-l", &format!("app.kubernetes.io/name={operator}")]))?;
    let pod = pods.trim().strip_prefix("pod/").context("no pod")?;
    let lease = demo::get(env, demo::OPERATORS, "lease", &format!("edpm-{operator}"))?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    ensure!(holder.starts_with(&format!("{pod}_")), "{holder} holds the Lease, and not {pod}");
    Ok(())
}

fn judge(work: &Requests, rest: &Requests, processes: &[process::Usage]) -> Result<()> {
    let mut wrong = unseen(work, "work");
    wrong.extend(unseen(rest, "rest"));
    wrong.extend(rest.unexpected_at_rest());
    wrong.extend(work.lists());
    wrong.extend(work.unexplained_reads());
    wrong.extend(beyond_baseline(work)?);
    for it in processes.iter().filter(|it| it.rss_mib > MEMORY_MIB) {
        wrong.push(format!("{} holds {:.1} MiB, more than {MEMORY_MIB}", it.name, it.rss_mib));
    }
    if !wrong.is_empty() {
        bail!("limits are exceeded:\n  {}", wrong.join("\n  "));
    }
    println!("All limits hold.");
    Ok(())
}

/// Operators without any request. A leader renews its Lease, so without requests nothing was
/// measured.
fn unseen(requests: &Requests, when: &str) -> Vec<String> {
    let found = requests.as_json();
    process::OPERATORS
        .into_iter()
        .filter(|it| {
            let requests = found[it].as_object();
            !requests.is_some_and(|all| all.keys().any(|request| request.contains("leases")))
        })
        .map(|it| format!("{it}: no request was seen at {when}, so nothing was measured"))
        .collect()
}

/// Returns the kinds of requests that exceed the baseline; fewer are fine.
fn beyond_baseline(work: &Requests) -> Result<Vec<String>> {
    let path = baseline_path();
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("no baseline at {}: run with --write-baseline", path.display()))?;
    let baseline: Value = serde_json::from_str(&text)?;
    let found = work.as_json();
    let mut wrong = Vec::new();
    for (operator, requests) in found.as_object().into_iter().flatten() {
        for (request, n) in requests.as_object().into_iter().flatten() {
            // Reads are checked individually.
            if depends_on_time(request) || request.starts_with("get ") {
                continue;
            }
            let allowed = baseline["work"][operator][request].as_u64().unwrap_or(0);
            let n = n.as_u64().unwrap_or(0);
            if n > allowed {
                wrong.push(format!("{operator}: {n} × {request}, the baseline has {allowed}"));
            }
        }
    }
    Ok(wrong)
}

/// Whether the number of requests of a kind depends on time, not on work: Events may be lost or merged,
/// definitions are read at the start, which may reach into the first step, and kinds of others that are
/// not there are looked for each minute.
fn depends_on_time(request: &str) -> bool {
    request.contains("events")
        || request.starts_with("watch")
        || request.contains("leases")
        || request == "get customresourcedefinitions"
        || request == "get "
}

fn baseline_path() -> std::path::PathBuf {
    paths::repo().join("bench/baseline.json")
}

fn write(path: &std::path::Path, report: &Value) -> Result<()> {
    sh::write_if_changed(path, &(serde_json::to_string_pretty(report)? + "\n")).map(drop)
}

/// Sets a new redeploy value on the role, and on each compute for phase 1.
fn redeploy(env: &lab::Env) -> Result<()> {
    let value = seconds_since_1970();
    let namespace = controlplane::NAMESPACE;
    let mut annotate = env.kubectl();
    annotate.args([
        "-n",
        namespace,
        "annotate",
        "--overwrite",
        "openstackdataplanerole/edpm-compute",
    ]);
    annotate.arg(format!("dataplane.openstack.org/redeploy={value}"));
    sh::run(&mut annotate)?;
    sh::wait_for("the nodes leave Ready", Duration::from_secs(30), || {
        let node = crate::demo::get(env, namespace, "openstackdataplanenode", "edpm-compute-0")?;
        let conditions = node["status"]["conditions"].as_array();
        let ready = conditions.into_iter().flatten().find(|it| it["type"] == "Ready");
        match ready {
            Some(it) if it["status"] == "False" => Ok(()),
            _ => bail!("edpm-compute-0 is still Ready"),
        }
    })
}

/// Returns a value that no earlier bench has used.
fn seconds_since_1970() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs()
}

/// Returns etcd's revision, which every list contains.
fn revision(env: &lab::Env) -> Result<u64> {
    let mut get = env.kubectl();
    get.args(["get", "--raw", "/api/v1/namespaces?limit=1"]);
    let list: Value = serde_json::from_str(&sh::run(&mut get)?)?;
    let version = list["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?;
    Ok(version.parse()?)
}
