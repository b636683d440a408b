-- Everything of a Shiftwork file. All times are whole seconds since the epoch; all jobs are opaque bytes.

-- One file holds any number of namespaces. The sizes of the three sets are kept here because counting a million
-- rows takes long.
CREATE TABLE namespace (
    id        INTEGER PRIMARY KEY,
    name      TEXT NOT NULL UNIQUE,
    scheduled INTEGER NOT NULL DEFAULT 0,
    retry     INTEGER NOT NULL DEFAULT 0,
    dead      INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One row per queue: what has to be known before a claim, without counting.
CREATE TABLE queue (
    id              INTEGER PRIMARY KEY,
    namespace       INTEGER NOT NULL REFERENCES namespace,
    name            TEXT NOT NULL,
    known           INTEGER NOT NULL DEFAULT 0,  -- 1 once a job of this name was pushed or a pool works on it
    paused          INTEGER NOT NULL DEFAULT 0,
    max_concurrency INTEGER,                     -- NULL: nobody has said; 0: no limit
    waiting         INTEGER NOT NULL DEFAULT 0,  -- rows in job from position head on
    running         INTEGER NOT NULL DEFAULT 0,  -- rows in claim
    head            INTEGER NOT NULL DEFAULT 0,  -- position from which on jobs wait
    tail            INTEGER NOT NULL DEFAULT 0,  -- position of the next job that is pushed
    swept           INTEGER NOT NULL DEFAULT 0,  -- position below which no rows are left in job
    next_claim      INTEGER NOT NULL DEFAULT 0,  -- sequence number of the next claim
    UNIQUE (namespace, name)
) STRICT;

-- Waiting jobs; the lowest position of a queue is next. Rows below the queue's head were claimed and are only still here
-- because removing many at once writes fewer pages. Jobs that go back get positions below the head.
CREATE TABLE job (
    queue    INTEGER NOT NULL,
    position INTEGER NOT NULL,
    job      BLOB NOT NULL,
    PRIMARY KEY (queue, position)
) STRICT, WITHOUT ROWID;

-- Jobs in progress. A finish names the exact bytes; the digest (64 bits of XXH3) finds them without comparing all.
CREATE TABLE claim (
    queue    INTEGER NOT NULL,
    pool     TEXT NOT NULL,
    digest   INTEGER NOT NULL,
    sequence INTEGER NOT NULL,                   -- the order in which the claims of this queue were made
    job      BLOB NOT NULL,
    PRIMARY KEY (queue, pool, digest, sequence)
) STRICT, WITHOUT ROWID;

-- The scheduled, retry and dead sets. As in a sorted set of Redis, equal bytes are one member, and members of one second
-- are in the order of their bytes.
CREATE TABLE due (
    namespace INTEGER NOT NULL,
    state     TEXT NOT NULL CHECK (state IN ('scheduled', 'retry', 'dead')),
    at        INTEGER NOT NULL,
    job       BLOB NOT NULL,
    PRIMARY KEY (namespace, state, at, job)
) STRICT, WITHOUT ROWID;

-- Finds the second under which some bytes are in a set.
CREATE TABLE due_member (
    namespace INTEGER NOT NULL,
    state     TEXT NOT NULL,
    digest    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (namespace, state, digest, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE unique_key (
    namespace  INTEGER NOT NULL,
    key        TEXT NOT NULL,
    owner      TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX unique_key_by_expiry ON unique_key (expires_at);

-- Worker pools and their heartbeats.
CREATE TABLE pool (
    namespace    INTEGER NOT NULL,
    id           TEXT NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    started_at   INTEGER NOT NULL,
    job_names    TEXT NOT NULL,                  -- sorted, with commas between
    concurrency  INTEGER NOT NULL,
    worker_ids   TEXT NOT NULL,                  -- sorted, with commas between
    host         TEXT NOT NULL,
    pid          INTEGER NOT NULL,
    quiet        INTEGER NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

-- What workers run, for people to see.
CREATE TABLE worker (
    namespace  INTEGER NOT NULL,
    id         TEXT NOT NULL,
    job_name   TEXT NOT NULL,
    job_id     TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    args       BLOB NOT NULL,
    checkin    TEXT,
    checkin_at INTEGER,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

-- Which workers died with a job, kept for a week.
CREATE TABLE crash (
    id         INTEGER PRIMARY KEY,
    namespace  INTEGER NOT NULL,
    job_id     TEXT NOT NULL,
    record     TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX crash_by_job ON crash (namespace, job_id);

-- What the reapers of a namespace know. Times in microseconds, but for quiet_until and lock_until.
CREATE TABLE reaper (
    namespace   INTEGER PRIMARY KEY,
    looked      INTEGER,
    audited     INTEGER,
    quiet_until INTEGER NOT NULL DEFAULT 0,
    lock_token  TEXT,
    lock_until  INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Pools that hold something and are not registered, and since when.
CREATE TABLE unknown_pool (
    namespace INTEGER NOT NULL,
    pool      TEXT NOT NULL,
    since     INTEGER NOT NULL,
    PRIMARY KEY (namespace, pool)
) STRICT, WITHOUT ROWID;

-- Ticks of periodic jobs, by the id of their job: until when it is remembered that they were put in, and picked up.
CREATE TABLE tick (
    namespace       INTEGER NOT NULL,
    id              TEXT NOT NULL,
    put_in_until    INTEGER NOT NULL DEFAULT 0,
    picked_up_until INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

-- The latest tick that was ever put in, by name and spec.
CREATE TABLE schedule (
    namespace INTEGER NOT NULL,
    key       TEXT NOT NULL,
    last_tick INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;
