"""One module for each framework, run by the Python of its own environment.

None of them imports anything of ours but the protocol beside it, and each says in its docstring what the framework
keeps, sends and does at its defaults.
"""
