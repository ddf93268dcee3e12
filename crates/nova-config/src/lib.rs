//! nova-compute's configuration: oslo.config's syntax and options, the files of a compute, and
//! their names.

pub mod annotations;
pub mod conditions;
pub mod conf;
pub mod file_names;
pub mod oslo;
pub mod release;
pub mod rendered_secret;
pub mod services;
pub mod transport_url;
