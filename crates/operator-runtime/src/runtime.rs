//! Lifecycle of an operator process: startup, long-running tasks, ordered shutdown.

use std::{process::ExitCode, time::Duration};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    task::JoinError,
};
use tracing::{error, info};

mod task_group;

pub use task_group::TaskGroup;

use crate::{
    admin::{self, Health},
    args::CommonArgs,
    client,
    error::{Error, Result},
    lease::{self, LeadershipWatch, Timing},
    metrics::Metrics,
    shutdown::Shutdown,
};

/// Grace period for workers to finish at shutdown.
const GRACE: Duration = Duration::from_secs(20);

/// A running operator: the state its parts share, and its tasks.
pub struct Runtime {
    client: Client,
    metrics: Metrics,
    health: Health,
    namespace: String,
    instance: String,
    leadership: LeadershipWatch,
    /// Tasks that may write; they are stopped first.
    workers: TaskGroup,
    /// Leader election and the administrative endpoints; they are stopped last.
    keepers: TaskGroup,
}

impl Runtime {
    /// Connects to the cluster, opens the administrative endpoints and joins the leader election.
    ///
    /// `operator` is the short name, as in `nova-operator`; its Lease is `edpm-<operator>`.
    pub async fn start(operator: &str, args: &CommonArgs) -> Result<Self> {
        install_crypto();
        let metrics = Metrics::new(operator);
        let config = config(args).await?;
        let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = client::client(config, operator, &metrics)?;
        let health = Health::default();
        let mut keepers = TaskGroup::default();

        let listener = TcpListener::bind(args.admin_address)
            .await
            .map_err(|it| Error::process(format!("cannot listen on {}", args.admin_address), it))?;
        let router = admin::router(metrics.clone(), health.clone());
        let stop = keepers.shutdown();
        keepers.spawn("administrative endpoints", admin::serve(listener, router, stop));

        let instance = identity(args);
        let me = lease::holder(&instance);
        let (leadership, election) = if args.leader_elect {
            let lease = format!("edpm-{operator}");
            let timing = Timing::of(Duration::from_secs(args.lease_duration.into()));
            lease::elect(client.clone(), (&namespace, &lease), timing, me, keepers.shutdown())
        } else {
            lease::always(&me, keepers.shutdown())
        };
        keepers.spawn("leader election", async { election.await.unwrap_or_else(panicked) });
        let gauge = show_leadership(leadership.clone(), metrics.clone(), keepers.shutdown());
        keepers.spawn("leadership gauge", gauge);
        Ok(Self {
            client,
            metrics,
            health,
            namespace,
            instance,
            leadership,
            workers: TaskGroup::default(),
            keepers,
        })
    }

    /// Returns the client; every request through it is counted.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the process's metrics.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Returns the registry of readiness and liveness checks.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Returns the operator's own namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns this replica's name.
    pub fn instance(&self) -> String {
        self.instance.clone()
    }

    /// Returns a receiver of the leadership state.
    pub fn leadership(&self) -> LeadershipWatch {
        self.leadership.clone()
    }

    /// Returns the signal at which workers must end.
    pub fn shutdown(&self) -> Shutdown {
        self.workers.shutdown()
    }

    /// Spawns a worker; it must run until [`Runtime::shutdown`].
    pub fn spawn<F>(&mut self, name: impl Into<String>, task: F)
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        self.workers.spawn(name, task);
    }

    /// Runs until SIGTERM or SIGINT, or until any task ends early, which is an error.
    ///
    /// # Guarantees
    /// Workers end before the Lease is released, so that a new leader never overlaps with a writer.
    pub async fn run(mut self) -> Result<()> {
        let outcome = tokio::select! {
            outcome = terminated() => outcome,
            error = self.workers.first_end() => Err(error),
            error = self.keepers.first_end() => Err(error),
        };
        match &outcome {
            Ok(()) => info!("shutting down"),
            Err(error) => error!("shutting down: {}", error.chain()),
        }
        self.workers.finish(GRACE).await;
        self.keepers.finish(Duration::from_secs(5)).await;
        outcome
    }
}

/// Installs ring as the process's crypto provider; must be called before any use of TLS.
pub fn install_crypto() {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Returns the client configuration of the cluster that the options select.
pub async fn config(args: &CommonArgs) -> Result<Config> {
    let failed = |error: kube::Error| Error::process("no cluster to connect to", error);
    if args.kubeconfig.is_none() && args.context.is_none() {
        return Config::infer().await.map_err(|it| failed(kube::Error::InferConfig(it)));
    }
    let options =
        KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let config = match &args.kubeconfig {
        None => Config::from_kubeconfig(&options).await,
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|it| failed(it.into()))?;
            Config::from_custom_kubeconfig(file, &options).await
        }
    };
    config.map_err(|it| failed(it.into()))
}

fn identity(args: &CommonArgs) -> String {
    let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    args.identity.clone().unwrap_or_else(|| host().trim().to_owned())
}

async fn show_leadership(
    mut leadership: LeadershipWatch,
    metrics: Metrics,
    mut stop: Shutdown,
) -> Result<()> {
    loop {
        metrics.set_leader(leadership.borrow_and_update().leads());
        tokio::select! {
            changed = leadership.changed() => if changed.is_err() {
                // The election task ended; its own handle reports that.
                stop.requested().await;
                return Ok(());
            },
            () = stop.requested() => return Ok(()),
        }
    }
}

async fn terminated() -> Result<()> {
    let listen = |kind| signal(kind).map_err(|it| Error::process("cannot listen to signals", it));
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

fn panicked(error: JoinError) -> Result<()> {
    Err(Error::process("the task panicked", error))
}

/// Runs an operator with logging set up. Logs its outcome and returns it as the exit code.
pub async fn exit_code(args: &CommonArgs, operator: impl Future<Output = Result<()>>) -> ExitCode {
    let outcome = match crate::telemetry::init(args.log_format, &args.log_level) {
        Ok(()) => operator.await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!(reason = error.reason(), error = error.chain(), "the operator ended");
            ExitCode::FAILURE
        }
    }
}
