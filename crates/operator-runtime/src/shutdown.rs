//! The shutdown signal for tasks.

use tokio::sync::watch;

/// Receiver of the shutdown signal; all clones see the same signal.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// Sender of the shutdown signal; dropping it requests the shutdown too.
#[derive(Debug)]
pub struct Trigger(watch::Sender<bool>);

/// Creates a connected trigger and receiver.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dropped_trigger_requests_the_shutdown() {
        let (trigger, mut stop) = shutdown();
        assert!(!*stop.0.borrow());
        drop(trigger);
        stop.requested().await;
    }
}
