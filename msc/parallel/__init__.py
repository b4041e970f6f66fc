"""Many devices: meshes, layouts of tensors on them, and the programs of their ranks."""


def __getattr__(name: str) -> object:
    """What MindSpore's `parallel` has beside these: settings of one process."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module("msc.frontend.parallel"), name)
