"""Where do runs run? executor.py: the four verbs; local.py: processes on this machine; queue.py, worker.py: in turn."""
