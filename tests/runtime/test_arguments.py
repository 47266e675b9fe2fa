"""Mistakes on the command line are one line, with the flag that was meant."""

import pytest

from rdc_jax.runtime.arguments import Parser


@pytest.fixture
def parser():
    made = Parser(prog="tool", description="Short.")
    made.add_argument("--level", type=int)
    commands = made.add_subparsers(dest="command")
    commands.add_parser("check").add_argument("--folder")
    return made


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--levle=3"], "--levle=3; did you mean --level?"),
        (["check", "--foldr", "x"], "--foldr; did you mean --folder?"),
        (["--nothing-like-it"], "unrecognized arguments: --nothing-like-it; see"),
        (["--level=high"], "invalid int value: 'high'"),
    ],
)
def test_a_mistake_is_one_line(parser, argv, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        parser.parse(argv)
    err = capsys.readouterr().err
    assert stopped.value.code == 2
    assert err.startswith("error: ") and err.count("\n") == 1 and message in err


def test_a_misspelt_flag_is_not_called_missing(capsys):
    made = Parser(prog="tool", description="Short.")
    made.add_argument("--support", required=True)
    with pytest.raises(SystemExit):
        made.parse(["--suport", "x"])
    assert "--suport; did you mean --support?" in capsys.readouterr().err
    assert made.parse(["--supp", "x"]).support == "x"  # Short forms stay.


def test_what_is_right_is_parsed(parser):
    assert parser.parse(["--level=3", "check"]).level == 3
