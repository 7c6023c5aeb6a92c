"""Base classes of tests: what every implementation of a contract must do, stated once."""
