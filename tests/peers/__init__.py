"""The test suites of other frameworks, over our interfaces."""
