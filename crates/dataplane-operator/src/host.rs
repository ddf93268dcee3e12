//! What roles and node sets share about the hosts that they bring into service.

pub mod attachments;
pub mod changed_hosts;
pub mod conflicts;
pub mod effective_spec;
pub mod gates;
pub mod inputs;
pub mod inventory_metadata;
pub mod known_inputs;
pub mod last_look;
pub mod machines;
pub mod networks;
pub mod node_conditions;
pub mod node_state;
pub mod published_hashes;
pub mod runs;
pub mod services;
pub mod ssh_trust;
pub mod status;
pub mod tls;
pub mod vars;
