//! What a controller decided to do: steps in order, and the status, as plain data.
