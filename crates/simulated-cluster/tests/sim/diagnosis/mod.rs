//! Each fault of the table that needs no real host, injected in the simulated cluster: `kubectl
//! describe` of the user's object names the object concerned, the cause and the next step within
//! five seconds, and not before.

mod cells;
mod hosts;
mod machines;
mod nodes;
mod runs;
mod scene;
