"""A mission's memory, layers L1 to L4: raw entries, memory pages, identities and their compaction."""
