//! The oldest and the newest version of Ironic's API that is spoken here.

use config_drive::ApiVersion;

/// The oldest version that is understood: `traits` came with 1.37, and Ironic of the year 2018 has 1.46.
pub const OLDEST: ApiVersion = ApiVersion { major: 1, minor: 46 };
/// The version that is spoken where the server has it: all fields that are looked at or written are known
/// to it, the network data of ramdisks among them.
pub const NEWEST: ApiVersion = ApiVersion { major: 1, minor: 66 };
