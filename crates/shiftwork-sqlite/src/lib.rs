//! shiftwork-sqlite (being built).
