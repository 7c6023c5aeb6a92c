"""What `lmdb` is made of: pages and keys, values of datapoints, and a look at damaged files."""
