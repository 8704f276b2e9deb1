"""The common base, without knowledge of missions: errors, records, schemas, time, console output, redaction."""
