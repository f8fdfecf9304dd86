"""Models behind one port: the registry, the provider adapters, the offline model.

What starts a process imports ``registry``, ``keys`` and ``python_tools``. Modules that need pydantic-ai are loaded when
the first model of a provider is needed: they take a second, and the offline model needs none of them.
"""
