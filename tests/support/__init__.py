"""What tests of several parts share: builders of events and of histories."""
