"""The lasting records of runs: snapshots, exports, restores, pruning and deletion."""
