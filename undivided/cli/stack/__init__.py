"""The embedded stack: Postgres and Valkey from wheels, in one data folder, under one roof."""
