"""Whatever is in a file or on the command line: an answer, or one clear line."""

import builtins
import io
import json
import os
import pickle
import struct
import subprocess
import zipfile
import zlib

import numpy as np
import pytest
from data.pictures import make_folder
from hypothesis import strategies as st
from torture.fuzz import answer_or_line, edited, fuzz, json_values
from torture.kinds import KINDS

from rdc_jax.configs import eval as eval_config
from rdc_jax.configs import pretrain as pretrain_config
from rdc_jax.data.filelist import open_filelist
from rdc_jax.data.open import open_source
from rdc_jax.evaluation.ledger import Ledger
from rdc_jax.evaluation.options import Options
from rdc_jax.methods import get_method
from rdc_jax.models import weights
from rdc_jax.models.torch_pickle import read_tensors
from rdc_jax.pretrain.options import Options as TrainingOptions
from rdc_jax.runtime.errors import UserError

LIST = {
    "label_names": ["ant", "bee"],
    "image_names": ["bee/000.png", "ant/001.png", "ant/000.png"],
    "image_labels": [1, 0, 0],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("files") / "set", ["ant", "bee"])


@fuzz(
    st.dictionaries(st.sampled_from([*LIST]), json_values).map(
        lambda change: json.dumps(LIST | change).encode("utf-8", "surrogatepass")
    )
    | edited(json.dumps(LIST).encode())
)
def test_file_lists(folder, content):
    (folder / "list.json").write_bytes(content)
    source = answer_or_line(open_filelist, folder / "list.json")
    if source is not None:
        assert len(source) == len(source.labels) > 0
        for i in range(len(source)):
            source.image(i)


names = st.sampled_from(["000.png", "001.png", "000", "x", "", '"', "a\0b", "../a"])
cells = names | st.text(max_size=6)
tables = st.lists(st.lists(cells, max_size=4).map(",".join), max_size=6)


@fuzz(
    tables.map(
        lambda rows: "\n".join(["filename,label", *rows]).encode("utf-8", "replace")
    )
    | edited(b"filename,label\n000.png,ant\n001.png,bee\n")
)
def test_tables(folder, content):
    (folder / "train.csv").write_bytes(content)
    source = answer_or_line(open_source, str(folder), None, "train")
    (folder / "train.csv").unlink()
    if source is not None:
        assert len(source) == len(source.labels) > 0


def _chained(values):
    """Lines with right checksums, whatever they hold."""
    content, checksum = b"", 0
    for value in values:
        text = value if isinstance(value, bytes) else json.dumps(value).encode()
        checksum = zlib.crc32(text, checksum)
        content += b"%08x %s\n" % (checksum, text)
    return content


HEADER = {"config": {"seed": 0}}
records = (
    json_values
    | st.binary(max_size=6).filter(lambda text: b"\n" not in text and b"\r" not in text)
    | st.tuples(st.just("cub"), st.just(1), st.just("features"), st.integers(0, 2)).map(
        lambda stage: [*stage, [3, 4]]
    )
)


@fuzz(st.lists(records, max_size=5), st.booleans())
def test_ledgers(tmp_path_factory, lines, with_header):
    path = tmp_path_factory.getbasetemp() / "fuzzed.jsonl"
    first = [{"format": 1, **HEADER}] if with_header else []
    path.write_bytes(_chained(first + lines))
    ledger = answer_or_line(Ledger, path, HEADER)
    if ledger is not None:
        with ledger:
            assert ledger.header == {"format": 1, **HEADER}
            assert path.read_bytes().startswith(_chained(first))


def _zipped(content, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr("archive/data.pkl", content)
    return buffer.getvalue()


SAVED = pickle.dumps({"epoch": 3, "state": {"a": [1.5, "b"], "c": (2, None)}}, 2)


@fuzz(edited(SAVED) | st.binary(max_size=60).map(lambda x: b"\x80\x02" + x + b"."))
def test_pickles(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzzed.tar"
    for data in (content, _zipped(content)):
        path.write_bytes(data)
        answer_or_line(read_tensors, path)


CALLABLES = (
    *(os.system, os.remove, subprocess.Popen, builtins.eval, builtins.exec),
    *(builtins.__import__, builtins.getattr, open, np.load, pickle.loads),
)


class Hostile:
    """Asks the reader to call something, as pickles may."""

    def __init__(self, function, argument):
        self.call = function, (argument,)

    def __reduce__(self):
        return self.call


@fuzz(st.sampled_from(CALLABLES), st.text(max_size=5), st.integers(0, 5))
def test_no_pickle_calls_anything(tmp_path_factory, function, argument, protocol):
    path = tmp_path_factory.getbasetemp() / "fuzzed.tar"
    path.write_bytes(_zipped(pickle.dumps([Hostile(function, argument)], protocol)))
    with pytest.raises(UserError, match="nothing of it was run"):
        read_tensors(path)


def _laughs(depth=60):
    value = []
    for _ in range(depth):
        value = [value] * 10
    return _zipped(pickle.dumps(value))


def _stretched():
    """A tensor of 10 TB whose storage is four bytes."""
    load = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
    load += b"X\x03\x00\x00\x00cpuK\x01tQ"
    size = b"J\x80\x84\x1e\x00" * 2 + b"\x86" + b"K\x00K\x00\x86"
    call = b"ctorch._utils\n_rebuild_tensor_v2\n(" + load + b"K\x00" + size
    content = b"\x80\x02" + call + b"\x89cco" + b"."
    content = content.replace(b"\x89cco", b"\x89Ntq\x00R")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/data/0", struct.pack("<f", 1.0))
    return buffer.getvalue()


BOMBS = {
    "compressed zeros": _zipped(bytes(10**7), zipfile.ZIP_DEFLATED),
    "a memo of billions": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "a tensor larger than its storage": _stretched(),
    "endless lists": b"\x80\x02" + b"]" * 10**5 + b"a" * (10**5 - 1) + b".",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_in_checkpoints_are_refused(tmp_path, bomb):
    (tmp_path / "bomb.tar").write_bytes(BOMBS[bomb])
    with pytest.raises(UserError, match="damaged: copy it again"):
        read_tensors(tmp_path / "bomb.tar")


def test_a_billion_laughs_take_no_memory(tmp_path):
    (tmp_path / "laughs.tar").write_bytes(_laughs())
    value = read_tensors(tmp_path / "laughs.tar")
    for _ in range(60):
        value = value[9]
    assert value == []


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    folder = tmp_path_factory.mktemp("net")
    KINDS["safetensors"].make(folder)
    return folder, KINDS["safetensors"].use(folder)


@fuzz(st.data())
def test_safetensors(net, data):
    folder, expected = net
    whole = (folder / "net.safetensors").read_bytes()
    part = data.draw(st.sampled_from([slice(0, 600), slice(600, None)]))
    bad = data.draw(edited(whole[part]))
    path = folder / "fuzzed.safetensors"
    path.write_bytes(bad + whole[600:] if part.start == 0 else whole[:600] + bad)
    found = answer_or_line(weights.read, path)
    if found is not None:
        os.replace(path, folder / "net.safetensors")
        assert KINDS["safetensors"].use(folder) == expected
        (folder / "net.safetensors").write_bytes(whole)


words = st.sampled_from(
    (
        *("rdc", "rdc_ft", "npc", "(", ")", ";", "=", "lam", "k", "dim", "layers"),
        *("block3", "0.3", "6", "-1", "nan", "1e999", "True", "+", ",", "x"),
    )
)


@fuzz(st.lists(words, max_size=8).map("".join) | st.text(max_size=12))
def test_methods_with_parameters(text):
    method = answer_or_line(get_method, text)
    if method is not None:
        assert text.startswith(method.name) and method.title


def _other(value):
    """Another value of the same type, which is all that the flags let through."""
    numbers = st.sampled_from([0, -1, 1, 2, 7, 2**31, -(2**63), 10**30])
    return {
        bool: st.booleans(),
        int: numbers | st.integers(),
        float: st.floats() | st.sampled_from([0.0, -1.0, 1e-300, 2.0]),
        str: st.text(max_size=10) | st.sampled_from(["", ",", "1,5", "5,x", "0", "-1"]),
    }[type(value)]


def _flat(config):
    fields = ((k, v) for k, v in config.items() if k not in ("plugins", "pretrain"))
    for name, value in fields:
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", v) for inner, v in value.items())
        else:
            yield name, value


def _changed(draw, config):
    fields = dict(_flat(config))
    for name in draw(st.lists(st.sampled_from([*fields]), min_size=1, max_size=3)):
        part, _, inner = name.rpartition(".")
        place = config[part] if part else config
        place[inner] = draw(_other(fields[name]))
    return config


@pytest.mark.usefixtures("no_type_checks")
@pytest.mark.parametrize(
    ("module", "kind"),
    [(eval_config, Options), (pretrain_config, TrainingOptions)],
    ids=["eval", "pretrain"],
)
@fuzz(data=st.data())
def test_configs(module, kind, data):
    config = _changed(data.draw, module.get_config("test").to_dict())
    answer_or_line(kind.from_config, config)
