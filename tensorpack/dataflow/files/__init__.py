"""Files of datapoints: what all formats share is in `records`; each format has a module."""
