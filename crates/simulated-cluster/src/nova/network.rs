//! A fake neutron, limited to its agents.

use serde_json::{Value, json};

use super::state::{Agent, State};
use crate::answer::{Answer, Outcome, Query};

/// Creates an error response in neutron's format.
pub(crate) fn refused(status: u16, type_: &str, message: &str) -> Answer {
    let error = json!({ "type": type_, "message": message, "detail": "" });
    Answer::of(status, json!({ "NeutronError": error }))
}

/// Returns neutron's description of itself.
pub(crate) fn versions() -> Value {
    json!({ "versions": [{ "id": "v2.0", "status": "CURRENT", "links": [] }] })
}

impl State {
    /// Answers a request to neutron; `parts` are those of the path after `/network/v2.0`.
    pub(crate) fn network(
        &mut self,
        (method, parts): (&str, &[&str]),
        query: &Query<'_>,
    ) -> Outcome {
        match (method, parts) {
            ("GET", ["agents"]) => {
                let (host, binary) = (query.get("host"), query.get("binary"));
                let agents = self.agents.iter();
                let agents = agents.filter(|(_, it)| host.is_none_or(|host| it.host == host));
                let agents = agents.filter(|(_, it)| binary.is_none_or(|name| it.binary == name));
                let agents: Vec<Value> = agents.map(|(id, it)| self.agent(id, it)).collect();
                Ok(Answer::of(200, json!({ "agents": agents })))
            }
            ("DELETE", ["agents", id]) => {
                let missing =
                    || refused(404, "AgentNotFound", &format!("Agent {id} could not be found."));
                // One that runs is back with its next report.
                if !self.is_alive(self.agents.get(*id).ok_or_else(missing)?) {
                    self.agents.remove(*id);
                }
                Ok(Answer::of(204, Value::Null))
            }
            _ => Err(refused(404, "HTTPNotFound", "The resource could not be found.")),
        }
    }

    /// An agent reports as long as nova-compute of its host does, or as a test has it.
    fn is_alive(&self, agent: &Agent) -> bool {
        self.reporting_agents.contains(&agent.host)
            || self.hosts.get(&agent.host).is_some_and(|it| it.reports)
    }

    fn agent(&self, id: &str, agent: &Agent) -> Value {
        let type_ = match agent.binary.as_str() {
            "ovn-controller" => "OVN Controller agent",
            "neutron-ovn-metadata-agent" => "OVN Metadata agent",
            other => other,
        };
        json!({
            "id": id, "host": agent.host, "binary": agent.binary, "agent_type": type_,
            "alive": self.is_alive(agent), "admin_state_up": true,
        })
    }
}
