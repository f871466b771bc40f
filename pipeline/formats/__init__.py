"""File formats of payments and of banks' reports, each a module. CONTRIBUTING.md says how to add one."""
