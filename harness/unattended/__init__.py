"""A mission is started by the machine at set times, says what came of it in one bounded log, and what would stop it tonight."""
