//! Each fault that needs a real host, injected on the lab: `kubectl describe` of the object that a
//! user wrote names the affected object, the cause and the next step, soon after the fault and not
//! before.

mod hosts;
