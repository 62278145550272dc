"""A broker whose time is moved, and that fails when told."""
