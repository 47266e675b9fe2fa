"""What a disk, a copy that broke off or a person may do to a file."""


def flip(path, rng):
    """Change one bit."""
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def cut(path, rng):
    """Lose the end."""
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))])


def blank(path, rng):
    """Lose a sector, or what of it lies in the file."""
    data = bytearray(path.read_bytes())
    start = rng.randrange(len(data))
    lost = len(data[start : start + 512])
    data[start : start + lost] = bytes(lost)
    path.write_bytes(data)


def empty(path, rng):
    """Keep the name only."""
    path.write_bytes(b"")


def delete(path, rng):
    """Keep nothing."""
    path.unlink()


ALL = (flip, cut, blank, empty, delete)
