"""XLA's own convolution."""

from jax import Array, lax


def conv(x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int) -> Array:
    """``lax.conv_general_dilated`` on channels-last images."""
    return lax.conv_general_dilated(
        x_bhwi,
        kernel_kkio,
        (stride, stride),
        [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
