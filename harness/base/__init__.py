"""The common base, independent of missions: errors, records, schemas, time, console output, redaction."""
