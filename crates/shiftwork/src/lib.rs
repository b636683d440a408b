//! shiftwork (being built).
