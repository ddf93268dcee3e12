//! What happens to the pods of runs regardless of their hosts.

/// How a pod ends.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Fate {
    /// As its hosts decide.
    #[default]
    Play,
    /// Its tasks are executed, then the container exits with this code and this message, which may
    /// be empty, truncated or of another format.
    Ends {
        /// The exit code.
        code: i32,
        /// The termination message.
        message: String,
    },
    /// Its limit matches none of its hosts.
    NoHostMatched,
    /// It runs until it is deleted.
    Hangs,
    /// It runs, and its kubelet evicts it with this message.
    Evicted(String),
    /// It runs, and is killed because it is out of memory.
    OutOfMemory,
    /// It runs, its worker is lost, and its status is never updated again.
    WorkerLost,
    /// Its image cannot be pulled; with the container runtime's message.
    ImagePull(String),
    /// It cannot be scheduled; with the scheduler's message.
    Unschedulable(String),
}

/// Selects the runs that a fate applies to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Matching {
    /// Their namespace.
    pub namespace: String,
    /// Their service; empty matches any.
    pub service: String,
    /// Their name; empty matches any.
    pub run: String,
    /// Their image; empty matches any.
    pub image: String,
}

impl Matching {
    /// Matches all runs of a namespace.
    pub fn all(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..Self::default() }
    }

    /// Matches the runs of a service in a namespace.
    pub fn service(namespace: &str, service: &str) -> Self {
        Self { service: service.to_owned(), ..Self::all(namespace) }
    }

    /// Matches the run of that name in a namespace.
    pub fn run(namespace: &str, run: &str) -> Self {
        Self { run: run.to_owned(), ..Self::all(namespace) }
    }

    /// Matches the runs with an image in a namespace.
    pub fn image(namespace: &str, image: &str) -> Self {
        Self { image: image.to_owned(), ..Self::all(namespace) }
    }

    /// Returns whether a run with these properties matches.
    pub(super) fn is_of(&self, run: &Self) -> bool {
        let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        self.namespace == run.namespace
            && fits(&self.run, &run.run)
            && fits(&self.service, &run.service)
            && fits(&self.image, &run.image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fate_is_for_a_namespace_a_service_or_a_run() {
        let run = Matching {
            service: "trace".into(),
            image: "a:1".into(),
            ..Matching::run("ns", "run-1")
        };
        let of = |it: Matching| it.is_of(&run);
        assert!(of(Matching::all("ns")) && !of(Matching::all("other")));
        assert!(of(Matching::service("ns", "trace")) && !of(Matching::service("ns", "nova")));
        assert!(of(Matching::run("ns", "run-1")) && !of(Matching::run("ns", "run-2")));
        assert!(of(Matching::image("ns", "a:1")) && !of(Matching::image("ns", "a:2")));
    }
}
