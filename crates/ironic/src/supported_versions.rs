//! The oldest and the newest supported version of Ironic's API.

use config_drive::ApiVersion;

use crate::history;

/// The oldest supported version: `traits` came with 1.37, and Ironic of the year 2018 has 1.46.
pub const OLDEST: ApiVersion = ApiVersion { major: 1, minor: 46 };
/// The newest version in use: it has all that is read or written, including the network data of
/// ramdisks (1.66) and the history of machines.
pub const NEWEST: ApiVersion = history::SINCE;
