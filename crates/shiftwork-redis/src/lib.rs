//! shiftwork-redis (being built).
