"""What every run needs: errors, files, checksums, progress, processes."""
