"""The command line: flags, ``--help``, ``--list``."""
