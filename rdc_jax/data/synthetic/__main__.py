"""Draw the contact sheet of the built-in domains.

python -m rdc_jax.data.synthetic --out docs/images/synthetic.png
"""

import argparse
import pathlib

from rdc_jax.data.synthetic.sheet import contact_sheet
from rdc_jax.runtime.errors import UserError, guard


def main() -> None:
    """Parse the command line and write the sheet."""
    parser = argparse.ArgumentParser(
        prog="python -m rdc_jax.data.synthetic",
        description="Draw a contact sheet of the built-in image domains.",
    )
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a .png file")
    parser.add_argument("--size", type=int, default=48, help="edge of an image (48)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the images (0)")
    args = parser.parse_args()
    sheet = contact_sheet(size=args.size, seed=args.seed)
    try:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        # 256 colours: a third of the file, and hardly to be told apart.
        sheet.quantize(256).save(args.out, optimize=True)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot write {args.out}: {error}") from error
    print(f"{args.out}: {sheet.width} x {sheet.height} pixels")


if __name__ == "__main__":
    guard(main)
