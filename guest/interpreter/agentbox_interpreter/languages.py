"""Which languages this image has a kernel for, and how each is started."""
import os
import shutil
import sys

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

SHORT = {"js": "javascript", "ts": "typescript", "python3": "python"}

# Ours: the language and the program it needs beside Python.
OWN = {"python": None}


class NoSuchLanguage(Exception):
    """No kernel for it here; the text says which there are."""


def normalized(language):
    name = (language or "python").lower().strip()
    return SHORT.get(name, name)


def own_kernel(language):
    """argv of one of our kernels: this same program, asked to be it."""
    return [sys.executable, os.path.abspath(sys.argv[0]), "kernel", language, "-f", "{connection_file}"]


class Languages:
    """Looked up anew each time: a user may install another kernel."""

    def __init__(self, manager=None):
        self.manager = manager or KernelSpecManager(ensure_native_kernel=False)

    def is_own(self, language):
        return language in OWN and (OWN[language] is None or shutil.which(OWN[language]) is not None)

    def foreign(self):
        """The image's own kernels, by their name and by their language."""
        found = {}
        for name, each in self.manager.get_all_specs().items():
            if normalized(name) in OWN:
                continue
            found.setdefault(each["spec"].get("language", name).lower(), name)
            found[name.lower()] = name
        return found

    def names(self):
        own = [language for language in OWN if self.is_own(language)]
        return sorted(set(own) | set(self.foreign()))

    def spec(self, language):
        if self.is_own(language):
            return KernelSpec(argv=own_kernel(language), display_name=language, language=language)
        foreign = self.foreign()
        if language in foreign:
            return self.manager.get_kernel_spec(foreign[language])
        raise NoSuchLanguage("language: no kernel for %s in this sandbox, only for %s; another one is found once it is "
                             "installed in the image" % (language[:64], ", ".join(self.names())))
