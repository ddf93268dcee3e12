//! Development.
mod machines;
mod scene;
