"""LMDB files: opening and checking them, their keys and records."""
