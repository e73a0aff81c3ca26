//! What is known about a function without changing it.
