//! A group of tasks that end together.

use std::time::Duration;

use tokio::{task::JoinSet, time::timeout};
use tracing::{debug, warn};

use crate::error::{Error, Result};
use crate::shutdown::{Shutdown, Trigger, shutdown};

/// Tasks that must run until shutdown is requested.
#[derive(Debug)]
pub struct TaskGroup {
    tasks: JoinSet<(String, Result<()>)>,
    trigger: Trigger,
    shutdown: Shutdown,
}

impl Default for TaskGroup {
    fn default() -> Self {
        let (trigger, shutdown) = shutdown();
        Self { tasks: JoinSet::new(), trigger, shutdown }
    }
}

impl TaskGroup {
    /// Returns the signal at which the tasks must end.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Spawns a task that runs until shutdown is requested.
    pub fn spawn<F>(&mut self, name: impl Into<String>, task: F)
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let name = name.into();
        self.tasks.spawn(async move { (name, task.await) });
    }

    /// Waits until any task ends, which none should before shutdown; cancel safe.
    pub async fn first_end(&mut self) -> Error {
        match self.tasks.join_next().await {
            None => std::future::pending().await,
            Some(Ok((name, Ok(())))) => {
                Error::Process { what: format!("{name} ended by itself"), source: None }
            }
            Some(Ok((name, Err(error)))) => Error::process(format!("{name} ended"), error),
            Some(Err(error)) => Error::process("a task panicked", error),
        }
    }

    /// Requests the shutdown and waits for the tasks, for at most `grace`; then aborts the rest.
    pub async fn finish(&mut self, grace: Duration) {
        self.trigger.request();
        let all = async {
            while let Some(ended) = self.tasks.join_next().await {
                match ended {
                    Ok((name, Ok(()))) => debug!("{name} ended in order"),
                    Ok((name, Err(error))) => warn!("{name} ended: {}", error.chain()),
                    Err(error) => warn!("a task panicked: {error}"),
                }
            }
        };
        if timeout(grace, all).await.is_err() {
            warn!("{} tasks did not end within {} s", self.tasks.len(), grace.as_secs());
            self.tasks.abort_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_ends_by_itself_is_an_error_that_names_it() {
        let mut crew = TaskGroup::default();
        let mut stop = crew.shutdown();
        crew.spawn("steady", async move {
            stop.requested().await;
            Ok(())
        });
        crew.spawn("weak", async { Ok(()) });
        assert_eq!(crew.first_end().await.to_string(), "weak ended by itself");
        crew.finish(Duration::from_secs(5)).await;
        assert!(crew.tasks.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_do_not_end_in_time_are_ended() {
        let mut crew = TaskGroup::default();
        crew.spawn("stubborn", std::future::pending());
        crew.finish(Duration::from_secs(20)).await;
        assert!(crew.tasks.join_next().await.is_some_and(|it| it.is_err()));
    }
}
