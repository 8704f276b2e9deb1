"""The command line: parses arguments, calls one function of a lower package, prints the result."""
