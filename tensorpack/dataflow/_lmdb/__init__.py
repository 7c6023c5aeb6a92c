"""LMDB files: opening and checking them, their keys and records, and the values of old versions."""
