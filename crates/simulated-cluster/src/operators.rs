//! The three operators as processes, each with the environment of its Deployment and a token of its
//! own service account.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::control_plane::ControlPlane;
use crate::folder::Folder;
use crate::helm_release::{NAMESPACE, Rendered};
use crate::operator::Operator;
use crate::ports;
use crate::processes::{Process, Processes};

/// Time limit for an operator to become leader; the Lease of a killed one may have to expire first.
const LEADS_WITHIN: Duration = Duration::from_mins(15);
/// Time limit for an operator to exit: a pod's default termination grace period.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// The operators' processes.
pub struct Operators {
    programs: PathBuf,
    folder: PathBuf,
    processes: Processes,
    client: Client,
    environment: BTreeMap<Operator, Vec<(String, String)>>,
    kubeconfigs: BTreeMap<Operator, PathBuf>,
    webhooks: BTreeMap<Operator, u16>,
    lease_seconds: Option<u16>,
    running: Mutex<BTreeMap<Operator, Running>>,
}

#[derive(Debug)]
struct Running {
    process: Process,
    identity: String,
    admin: u16,
    number: usize,
}

impl Operators {
    /// Requests a token for each operator; starts none.
    pub(crate) async fn new(
        programs: PathBuf,
        (folder, processes): (&Folder, &Processes),
        plane: &ControlPlane,
        client: &Client,
        (rendered, webhooks, lease_seconds): (&Rendered, BTreeMap<Operator, u16>, Option<u16>),
    ) -> Result<Self> {
        let mut kubeconfigs = BTreeMap::new();
        let mut environment = BTreeMap::new();
        for operator in Operator::ALL {
            let file = folder.at(&format!("{}.kubeconfig", operator.name()));
            plane.write_kubeconfig(&file, &token(client, operator).await?)?;
            kubeconfigs.insert(operator, file);
            environment.insert(operator, rendered.environment(operator.name())?);
        }
        Ok(Self {
            programs,
            folder: folder.path().to_owned(),
            processes: processes.clone(),
            client: client.clone(),
            environment,
            kubeconfigs,
            webhooks,
            lease_seconds,
            running: Mutex::default(),
        })
    }

    /// Starts an operator; it replaces the previous process, if there was one.
    pub fn start(&self, operator: Operator) -> Result<()> {
        let number = self.running().get(&operator).map_or(0, |it| it.number) + 1;
        let (identity, admin) = (format!("{}-{number}", operator.name()), ports::free()?);
        let log = self.log(operator);
        let program = self.programs.join(operator.name());
        let process = self.processes.start(operator.name(), &program, &log, |it| {
            it.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
            it.envs(self.environment[&operator].iter().map(|(name, value)| (name, value)));
            it.env("POD_NAMESPACE", NAMESPACE).env("POD_NAME", &identity);
            it.arg("--kubeconfig").arg(&self.kubeconfigs[&operator]);
            it.arg(format!("--admin-address=127.0.0.1:{admin}"));
            it.args(self.lease_seconds.map(|it| format!("--lease-duration={it}")));
            if let Some(port) = self.webhooks.get(&operator) {
                it.args(["--webhook-address=127.0.0.1", "--webhook-host=127.0.0.1"]);
                it.arg(format!("--webhook-port={port}"));
            }
        })?;
        self.running().insert(operator, Running { process, identity, admin, number });
        Ok(())
    }

    /// Waits until the operator's current process holds the Lease.
    pub async fn leads(&self, operator: Operator) -> Result<()> {
        let (leases, name) = (self.leases(), lease(operator));
        let begin = Instant::now();
        loop {
            let identity = self.with(operator, |it| {
                it.process.check()?;
                Ok(it.identity.clone())
            })?;
            let lease = leases.get_opt(&name).await?;
            let holder = lease.and_then(|it| it.spec?.holder_identity).unwrap_or_default();
            if holder.starts_with(&identity) {
                return Ok(());
            }
            if begin.elapsed() > LEADS_WITHIN {
                bail!("{name} is held by {holder:?}, not by {identity}");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the operator leads, has filled its caches, and serves its webhooks.
    pub async fn ready(&self, operator: Operator) -> Result<()> {
        self.leads(operator).await?;
        let begin = Instant::now();
        loop {
            let answer = readiness(&self.admin(operator)?).await.unwrap_or_default();
            if answer.starts_with("HTTP/1.1 200") {
                return Ok(());
            }
            if begin.elapsed() > LEADS_WITHIN {
                bail!("{} is not ready: {answer}", operator.name());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Kills the operator; it is not restarted before [`Operators::start`].
    pub fn kill(&self, operator: Operator) -> Result<()> {
        self.with(operator, |it| it.process.kill())
    }

    /// Suspends the operator with SIGSTOP, as on a machine that hangs.
    pub fn stop(&self, operator: Operator) -> Result<()> {
        self.with(operator, |it| it.process.signal("STOP"))
    }

    /// Resumes a suspended operator.
    pub fn go_on(&self, operator: Operator) -> Result<()> {
        self.with(operator, |it| it.process.signal("CONT"))
    }

    /// Kills operators, starts new processes, and waits until those lead and are ready.
    ///
    /// No process waits until the Lease of a killed one expires: what that did is done, and a new
    /// process that goes on sooner finds more of it under way.
    pub async fn replace(&self, operators: &[Operator]) -> Result<()> {
        for operator in operators {
            self.kill(*operator)?;
            self.remove_lease(*operator).await?;
            self.start(*operator)?;
        }
        for operator in operators {
            self.ready(*operator).await?;
        }
        Ok(())
    }

    /// Removes the Lease of an operator without a process.
    async fn remove_lease(&self, operator: Operator) -> Result<()> {
        match self.leases().delete(&lease(operator), &DeleteParams::default()).await {
            Err(kube::Error::Api(it)) if it.code == 404 => Ok(()),
            removed => Ok(removed.map(drop)?),
        }
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Ends the operator with SIGTERM, as Kubernetes ends a pod, and starts a new process.
    pub async fn restart(&self, operator: Operator) -> Result<()> {
        self.with(operator, |it| it.process.signal("TERM"))?;
        let begin = Instant::now();
        while self.with(operator, |it| Ok(it.process.check().is_ok()))? {
            if begin.elapsed() > ENDS_WITHIN {
                bail!("{} does not end", operator.name());
            }
            tokio::time::sleep(POLL).await;
        }
        self.start(operator)
    }

    /// Returns an error when an operator has exited by itself.
    pub fn check(&self) -> Result<()> {
        self.running().values().try_for_each(|it| it.process.check())
    }

    /// Returns the address of `/metrics`, `/healthz` and `/readyz`.
    pub fn admin(&self, operator: Operator) -> Result<String> {
        self.with(operator, |it| Ok(format!("127.0.0.1:{}", it.admin)))
    }

    /// Returns the process id of the operator's current process.
    pub fn pid(&self, operator: Operator) -> Result<u32> {
        self.with(operator, |it| Ok(it.process.pid()))
    }

    /// Returns the kubeconfig with the token of the operator's service account.
    pub fn kubeconfig(&self, operator: Operator) -> &Path {
        &self.kubeconfigs[&operator]
    }

    /// Returns the path of its log, shared by all of its processes.
    pub fn log(&self, operator: Operator) -> PathBuf {
        self.folder.join(format!("{}.log", operator.name()))
    }

    fn with<T>(&self, operator: Operator, work: impl FnOnce(&Running) -> Result<T>) -> Result<T> {
        let running = self.running();
        work(running.get(&operator).with_context(|| format!("{} never ran", operator.name()))?)
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<Operator, Running>> {
        self.running.lock()
    }
}

impl Drop for Operators {
    #[expect(clippy::print_stderr, reason = "tests show it where they fail")]
    fn drop(&mut self) {
        // A test that failed may have waited for a process that was gone.
        if let Err(ended) = self.check() {
            eprintln!("{ended:#}");
        }
    }
}

/// Returns the name of the Lease of an operator.
fn lease(operator: Operator) -> String {
    format!("edpm-{}", operator.name())
}

/// Returns the response of `/readyz`, including its head.
async fn readiness(admin: &str) -> Result<String> {
    let mut stream = TcpStream::connect(admin).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Requests a token of the operator's service account that outlasts a test run.
async fn token(client: &Client, operator: Operator) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let request: TokenRequest = serde_json::from_value(
        json!({ "metadata": {}, "spec": { "audiences": [], "expirationSeconds": 36_000 } }),
    )?;
    let made =
        accounts.create_token_request(operator.name(), &PostParams::default(), &request).await?;
    Ok(made.status.context("a token request without a token")?.token)
}
