//! shiftwork-core (being built).
