//! One reading of nova's services and hypervisors, whose lists take different times.

use std::pin::pin;
use std::time::Duration;

use openstack_client::{Error, Fault, Service};
use tokio::select;
use tokio::time::timeout;

/// How long services that were read wait for the list of hypervisors, which may have many pages.
const HYPERVISORS: Duration = Duration::from_secs(30);

/// Reads both at once, and returns what was found. A list of hypervisors that is not complete 30
/// seconds after the services is [`Error::Unreachable`].
pub async fn read<S, H>(
    services: impl Future<Output = S>,
    hypervisors: impl Future<Output = Result<H, Fault>>,
) -> (S, Result<H, Fault>) {
    let (mut services, mut hypervisors) = (pin!(services), pin!(hypervisors));
    select! {
        found = &mut services => {
            let listed = timeout(HYPERVISORS, hypervisors).await;
            (found, listed.unwrap_or_else(|_| Err(incomplete())))
        }
        listed = &mut hypervisors => (services.await, listed),
    }
}

fn incomplete() -> Fault {
    let text = "the list of hypervisors is not complete in time".to_owned();
    Fault::of(Service::Compute, Error::Unreachable(text))
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    /// Reads services that take so many seconds, and hypervisors; returns whether these are known, and
    /// how long both took.
    async fn reading(services: u64, hypervisors: u64) -> (bool, u64) {
        let started = Instant::now();
        let after = |seconds| async move {
            sleep(Duration::from_secs(seconds)).await;
            Ok::<_, Fault>(seconds)
        };
        let (found, listed) = read(after(services), after(hypervisors)).await;
        assert_eq!(found, Ok(services));
        (listed.is_ok(), started.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn services_wait_for_hypervisors_only_so_long() {
        for (services, hypervisors, expected) in [
            (1, 1, (true, 1)),
            (60, 1, (true, 60)),
            (1, 20, (true, 20)),
            (1, 90, (false, 31)),
            (60, 120, (false, 90)),
        ] {
            assert_eq!(reading(services, hypervisors).await, expected, "{services} {hypervisors}");
        }
    }
}
