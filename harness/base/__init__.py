"""What everything stands on, with no knowledge of missions: errors, records, schemas, time, the screen, redaction."""
