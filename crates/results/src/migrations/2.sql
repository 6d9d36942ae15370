CREATE TABLE export (
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    target TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (run, target)
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    target TEXT NOT NULL,
    position INTEGER NOT NULL,
    state TEXT NOT NULL,
    change INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    reason TEXT NOT NULL,
    UNIQUE (run, target, position),
    FOREIGN KEY (run, target) REFERENCES export ON DELETE CASCADE
) STRICT;
