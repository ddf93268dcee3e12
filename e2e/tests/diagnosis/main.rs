//! Each fault of the table, injected on the lab: `kubectl describe` of the object that a human wrote
//! tells the object concerned, the cause and the next step within five seconds, and not before.

mod cells;
mod hosts;
mod machines;
mod nodes;
mod runs;
mod world;
