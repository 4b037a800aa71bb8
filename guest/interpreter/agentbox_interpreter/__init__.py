"""The code interpreter of a sandbox; see guest/interpreter/README.md."""
