"""What `threads` is made of: pools, buffers bounded in bytes, and the order of results."""
