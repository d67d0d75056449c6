"""Everything that touches Postgres, and the settings that say where it is."""
