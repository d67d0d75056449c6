"""Specifications of processes: started for real, killed for real."""
