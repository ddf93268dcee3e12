//! Who begins, who waits and who is woken, in sequences.
