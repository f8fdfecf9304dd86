"""One module for each framework, run by the Python of its own environment.

None of them imports anything of this project but the protocol module of this package. Each says in its docstring what
the framework stores, sends and does at its defaults.
"""
