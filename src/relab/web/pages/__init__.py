"""One file a page: what it shows is asked of the wings above, and a template lays it out."""
