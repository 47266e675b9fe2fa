"""Networks that other libraries have trained, read from their files.

``files`` finds tensors and settings, one module a library says which network they are
and what each tensor is called, ``convert`` puts them into ours. None of it needs torch
or the library.
"""
