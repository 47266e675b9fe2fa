"""The statistics that every program normalises images by: those of ImageNet."""

Statistics = tuple[float, float, float]

MEAN: Statistics = (0.485, 0.456, 0.406)
"""Of red, green and blue, from 0 to 1."""

STD: Statistics = (0.229, 0.224, 0.225)
"""Standard deviations of red, green and blue."""
