"""What the site adds to Sphinx: pages from outside `docs`, the API reference, links of names."""
