"""Where do runs run? local.py: processes on this machine."""
