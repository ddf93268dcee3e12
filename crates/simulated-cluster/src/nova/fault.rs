//! What tests let requests be answered with instead, and the record of all requests.

use jiff::Timestamp;

use crate::clock;

/// What requests are answered with instead of nova's own answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NovaFault {
    /// They are rejected with this HTTP status, in the service's own format, and have no effect.
    Status(u16),
    /// They get an answer of the right microversion that is not JSON, and have no effect.
    Garbage,
    /// Their answer does not come before [`Nova::heal`](super::Nova::heal), and they have no effect
    /// until then.
    Silence,
    /// They have their effect, and their answer does not come before
    /// [`Nova::heal`](super::Nova::heal).
    LostAnswer,
}

/// A request that has arrived.
#[derive(Clone, Debug)]
pub struct NovaRequest {
    /// Method and path with the query, for example `GET /v2.1/os-services?binary=nova-compute`.
    pub line: String,
    /// When it arrived.
    pub at: Timestamp,
}

/// Whether a line begins so; `*` stands for whatever is between two parts.
pub(crate) fn is_of(line: &str, lines: &str) -> bool {
    match lines.split_once('*') {
        Some((begin, part)) => line.strip_prefix(begin).is_some_and(|it| it.contains(part)),
        None => line.starts_with(lines),
    }
}

/// A fault of requests whose line begins so.
#[derive(Debug)]
struct Rule {
    lines: String,
    fault: NovaFault,
    /// How many more requests are answered first.
    n_answered: usize,
    /// To how many requests it happens then.
    n: usize,
}

/// The faults that are set, and the requests that arrived.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    rules: Vec<Rule>,
    pub(crate) requests: Vec<NovaRequest>,
    /// How often all faults were removed.
    pub(crate) n_heals: usize,
}

impl Traffic {
    /// Lets `n` requests with such a line have a fault after the next `n_answered`; the last matching
    /// call applies.
    pub(crate) fn fail(&mut self, line: &str, (n_answered, n): (usize, usize), fault: NovaFault) {
        self.rules.push(Rule { lines: line.to_owned(), fault, n_answered, n });
    }

    /// Removes all faults.
    pub(crate) fn heal(&mut self) {
        self.rules.clear();
        self.n_heals += 1;
    }

    /// Removes the faults that were set for these lines; requests that have one keep it.
    pub(crate) fn answer(&mut self, line: &str) {
        self.rules.retain(|it| it.lines != line);
    }

    /// Records a request, and returns what happens to it, or `None` when it is answered.
    pub(crate) fn arrived(&mut self, line: &str) -> Option<NovaFault> {
        self.requests.push(NovaRequest { line: line.to_owned(), at: clock::now() });
        let is_for_it = |it: &&mut Rule| is_of(line, &it.lines) && it.n > 0;
        let rule = self.rules.iter_mut().rev().find(is_for_it)?;
        if rule.n_answered > 0 {
            rule.n_answered -= 1;
            return None;
        }
        rule.n -= 1;
        Some(rule.fault)
    }
}
