"""One file per command: parse, call one function of the library, print."""
