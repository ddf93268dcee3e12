//! What a cell has to do with hosts in nova: leftovers are worked off, and a cell that is being
//! deleted is held while its hosts have servers.

pub mod observe;
pub mod orders;
pub mod release;
