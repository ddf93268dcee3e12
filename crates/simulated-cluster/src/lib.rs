//! A simulated cluster: real etcd, API server and controller manager, the operators as processes,
//! and a player that ends the pods of runs as a test specifies.
//!
//! Control logic is tested against it. Behaviour that depends on a real kubelet, host, nova or
//! Ironic is tested in the lab.

mod answer;
mod broker;
mod clock;
mod control_plane;
mod folder;
mod helm_release;
mod http_service;
mod ironic;
mod keystone;
mod nova;
mod operator;
mod operators;
pub mod player;
mod ports;
mod processes;
mod programs;
mod ready_watch;
mod simulation;

pub use broker::Broker;
pub use control_plane::Audit;
pub use ironic::{Ironic, Trouble};
pub use keystone::Keystone;
pub use nova::{Nova, NovaFault, NovaRequest};
pub use operator::Operator;
pub use operators::Operators;
pub use player::host::{Behaviour, Host, PRIVATE_KEY};
pub use player::ledger::{Ledger, Visit};
pub use player::{Fate, Matching, Player};
pub use ready_watch::ReadyWatch;
pub use simulation::{Options, Simulation};
