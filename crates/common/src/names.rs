//! Names of derived objects, and the rules that names follow.
