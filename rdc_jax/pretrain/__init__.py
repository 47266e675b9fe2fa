"""Pre-training: from images to checkpoints, in small parts."""
