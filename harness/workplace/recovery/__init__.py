"""What a dead run left behind: the evidence, the runs that are not settled, and the plan to settle them."""
