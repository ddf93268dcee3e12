//! Stable digests of inputs.
