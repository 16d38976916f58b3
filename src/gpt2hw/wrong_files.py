"""What a file that should hold weights really is, from its first bytes.

A download that went wrong leaves a file of the right name and the wrong content. Its
first eight bytes, read as a length, give a nonsense number ("header too large"), so the
parser asks here what to tell the reader instead.
"""

# First bytes, in lower case and without white space before them -> what such a file is,
# and what to do.
_SIGNS: tuple[tuple[bytes, str], ...] = (
    (
        b"version https://git-lfs",
        "this is a Git LFS pointer, not the weights: fetch them with `git lfs pull`",
    ),
    (
        b"<",
        "this is an HTML or XML page, not weights: the download was answered by a web"
        " page (an error, a login or a limit); download the file again",
    ),
    (
        b'{"error"',
        "this is a JSON error message from a server, not weights: download the file"
        " again",
    ),
    (
        b"{",
        "this is a JSON text (a config, an index or a server's answer), not weights",
    ),
    (
        b"pk\x03\x04",
        "this is a zip archive, most likely a PyTorch checkpoint (pytorch_model.bin),"
        " which holds a pickle; a pickle can run any code, so it is never opened here:"
        " take the model.safetensors of the same model",
    ),
    (
        b"\x80",
        "this is a pickle, most likely an old PyTorch checkpoint; a pickle can run any"
        " code, so it is never opened here: take the model.safetensors of the same"
        " model",
    ),
    (b"\x1f\x8b\x08", "this is a gzip archive: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "this is a zstd archive: unpack it first"),
    (b"\xfd7zxz", "this is an xz archive: unpack it first"),
    (b"gguf", "this is a GGUF file (llama.cpp), another format for weights"),
    (
        b"\x89hdf",
        "this is an HDF5 file (TensorFlow, Keras), another format for weights",
    ),
    (b"\x93numpy", "this is a NumPy array file, another format for weights"),
)
_TEXT = frozenset(range(0x20, 0x7F)) | frozenset(b"\t\r\n")


def identify(first_bytes: bytes) -> str | None:
    """Names the kind of file that begins with these bytes, None where it is unknown.

    >>> identify(b"<!DOCTYPE html><html>")[:29]
    'this is an HTML or XML page, '
    >>> identify(b"Entry not found")
    "this is a text, not weights: it begins with 'Entry not found'"
    >>> identify(bytes(16))
    'this holds only zero bytes: the download was not finished'
    """
    if first_bytes and not any(first_bytes):
        return "this holds only zero bytes: the download was not finished"
    # A sign of one byte can be the honest beginning of a length: b"<" is 60.
    is_length = int.from_bytes(first_bytes[:8], "little") < 2**32
    start = first_bytes.lstrip().lower()
    for sign, meaning in _SIGNS:
        if start.startswith(sign) and not (is_length and len(sign) < 3):
            return meaning
    if len(first_bytes) >= 8 and all(byte in _TEXT for byte in first_bytes):
        text = first_bytes[:40].decode("ascii")
        return f"this is a text, not weights: it begins with {text!r}"
    return None
