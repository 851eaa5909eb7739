//! Shards, fibers, actors, timers, the reactor and sockets.
#![allow(unsafe_code, reason = "stack switching and system calls")]
