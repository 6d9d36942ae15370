CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    status TEXT NOT NULL,
    partial INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    began_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    plan TEXT NOT NULL,
    plan_hash TEXT NOT NULL,
    seed INTEGER,
    version TEXT NOT NULL,
    origin TEXT NOT NULL,
    harness TEXT NOT NULL,
    benchmarks TEXT NOT NULL,
    person TEXT NOT NULL,
    email TEXT NOT NULL
) STRICT;
CREATE TABLE tag (
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    name TEXT NOT NULL,
    transport TEXT NOT NULL,
    facts TEXT NOT NULL,
    offset_ns INTEGER,
    bound_ns INTEGER,
    UNIQUE (run, name)
) STRICT;
CREATE TABLE note (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    position INTEGER,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX note_run ON note (run);
CREATE TABLE iteration (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    num INTEGER NOT NULL,
    uuid TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    primary_metric TEXT NOT NULL,
    primary_period TEXT NOT NULL,
    UNIQUE (run, num)
) STRICT;
CREATE TABLE param (
    iteration INTEGER NOT NULL REFERENCES iteration ON DELETE CASCADE,
    position INTEGER NOT NULL,
    benchmark TEXT NOT NULL,
    arg TEXT NOT NULL,
    value TEXT NOT NULL,
    role TEXT NOT NULL,
    engines TEXT NOT NULL,
    PRIMARY KEY (iteration, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE sample (
    id INTEGER PRIMARY KEY,
    iteration INTEGER NOT NULL REFERENCES iteration ON DELETE CASCADE,
    num INTEGER NOT NULL,
    uuid TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    position INTEGER NOT NULL,
    UNIQUE (iteration, num)
) STRICT;
CREATE TABLE attempt (
    id INTEGER PRIMARY KEY,
    sample INTEGER NOT NULL REFERENCES sample ON DELETE CASCADE,
    num INTEGER NOT NULL,
    status TEXT NOT NULL,
    exit_code INTEGER,
    reason TEXT NOT NULL,
    began_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    skew_p99_us INTEGER,
    UNIQUE (sample, num)
) STRICT;
CREATE TABLE period (
    id INTEGER PRIMARY KEY,
    sample INTEGER NOT NULL REFERENCES sample ON DELETE CASCADE,
    name TEXT NOT NULL,
    uuid TEXT NOT NULL UNIQUE,
    begin_ms INTEGER NOT NULL,
    end_ms INTEGER NOT NULL,
    UNIQUE (sample, name)
) STRICT;
CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    attempt INTEGER NOT NULL REFERENCES attempt ON DELETE CASCADE,
    host TEXT NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX document_attempt ON document (attempt);
CREATE TABLE timeline (
    id INTEGER NOT NULL,
    part INTEGER NOT NULL,
    begin_ms INTEGER NOT NULL,
    end_ms INTEGER NOT NULL,
    count INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (id, part)
) STRICT;
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    attempt INTEGER REFERENCES attempt ON DELETE CASCADE,
    period INTEGER REFERENCES period ON DELETE CASCADE,
    source TEXT NOT NULL,
    type TEXT NOT NULL,
    class TEXT NOT NULL,
    unit TEXT NOT NULL,
    aggregation TEXT NOT NULL,
    timeline INTEGER NOT NULL
) STRICT;
CREATE INDEX series_metric ON series (run, source, type);
CREATE INDEX series_attempt ON series (attempt);
CREATE INDEX series_period ON series (period);
CREATE TABLE label (
    series INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (series, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    weighted REAL NOT NULL,
    low REAL NOT NULL,
    high REAL NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE tick (
    id INTEGER PRIMARY KEY,
    attempt INTEGER NOT NULL REFERENCES attempt ON DELETE CASCADE,
    host TEXT NOT NULL,
    collector TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE INDEX tick_attempt ON tick (attempt);
