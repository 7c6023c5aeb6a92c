"""What `remote` is made of: addresses, keys, messages, and both ends of a connection."""
