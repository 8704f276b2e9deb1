"""What is kept of past runs: snapshots, exports, restores, pruning and deletion."""
