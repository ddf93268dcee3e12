//! The signal by which tasks are told to end.

use tokio::sync::watch;

/// Tells a task when to end; clones are equal.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// The other end of [`Shutdown`]; dropping it requests the shutdown too.
#[derive(Debug)]
pub struct Trigger(watch::Sender<bool>);

/// A shutdown and what requests it.
pub fn shutdown() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Trigger(sender), Shutdown(receiver))
}

impl Trigger {
    /// Requests the shutdown.
    pub fn request(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Waits until the shutdown is requested; cancel safe.
    pub async fn requested(&mut self) {
        // An error means that the trigger is gone.
        let _ = self.0.wait_for(|it| *it).await;
    }

    /// Whether the shutdown is requested.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dropped_trigger_requests_the_shutdown() {
        let (trigger, mut stop) = shutdown();
        assert!(!stop.is_requested());
        drop(trigger);
        stop.requested().await;
    }
}
