CREATE TABLE outcome (
    sample INTEGER PRIMARY KEY REFERENCES sample ON DELETE CASCADE,
    verdict TEXT NOT NULL,
    why TEXT NOT NULL,
    metric TEXT NOT NULL,
    unit TEXT NOT NULL,
    value REAL
) STRICT;
ALTER TABLE sample ADD COLUMN run INTEGER REFERENCES run ON DELETE CASCADE;
UPDATE sample SET run = (SELECT run FROM iteration WHERE iteration.id = sample.iteration);
CREATE INDEX sample_run ON sample (run, position);
