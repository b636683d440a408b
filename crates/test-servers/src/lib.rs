//! test-servers (being built).
