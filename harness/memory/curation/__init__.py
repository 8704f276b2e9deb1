"""What a curation computes: lessons from entries, the summary, and what moves on to the identities."""
