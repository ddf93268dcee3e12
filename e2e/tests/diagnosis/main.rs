//! Each fault that only a real host can show, injected on the lab: `kubectl describe` of the
//! object that a user wrote tells the object concerned, the cause and the next step soon, and not before.

mod hosts;
mod world;
