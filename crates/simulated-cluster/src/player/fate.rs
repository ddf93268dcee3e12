//! What becomes of the pods of runs beyond what their hosts decide.

/// How a pod ends, whatever its hosts do.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Fate {
    /// As the hosts decide.
    #[default]
    Play,
    /// Its tasks are carried out, and the container ends with this code and this message: none, a cut
    /// one, or one of another kind.
    Ends {
        /// The exit code.
        code: i32,
        /// The termination message.
        message: String,
    },
    /// A limit leaves none of its hosts.
    NoHostMatched,
    /// It runs until it is deleted.
    Hangs,
    /// It runs, and its worker evicts it for this reason.
    Evicted(String),
    /// It runs, and the kernel kills it for its memory.
    OutOfMemory,
    /// It runs, its worker is lost, and nothing of it is heard again.
    WorkerLost,
    /// Its image cannot be pulled, in the words of the container runtime.
    ImagePull(String),
    /// No worker takes it, in the scheduler's words.
    Unschedulable(String),
}

/// The runs that a fate is for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Matching {
    /// Their namespace.
    pub namespace: String,
    /// Their service; any where empty.
    pub service: String,
    /// Their name; any where empty.
    pub run: String,
    /// Their image; any where empty.
    pub image: String,
}

impl Matching {
    /// All runs of a namespace.
    pub fn all(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..Self::default() }
    }

    /// The runs of a service in a namespace.
    pub fn service(namespace: &str, service: &str) -> Self {
        Self { service: service.to_owned(), ..Self::all(namespace) }
    }

    /// The run of that name in a namespace.
    pub fn run(namespace: &str, run: &str) -> Self {
        Self { run: run.to_owned(), ..Self::all(namespace) }
    }

    /// The runs with an image in a namespace.
    pub fn image(namespace: &str, image: &str) -> Self {
        Self { image: image.to_owned(), ..Self::all(namespace) }
    }

    /// Whether a run of these properties is meant.
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
