"""What a value is shown as, beyond what IPython does: tables as data, plots as charts, lists and dicts as JSON, pictures of
PIL when they are shown or saved. A library is looked at only when the user has imported it.
"""
import datetime
import importlib.abc
import math
import sys

from IPython.core.formatters import BaseFormatter, JSONFormatter
from IPython.display import display
from traitlets import ObjectName, Unicode

DEPTH_MAX = 64


def plain(value, depth=0):
    """As JSON has it: numbers that are not finite become null, keys strings. TypeError for what JSON has no word for."""
    if depth > DEPTH_MAX:
        raise TypeError("nested too deep")
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each, depth + 1) for each in value]
    if hasattr(value, "tolist"):  # numpy's arrays and numbers
        return plain(value.tolist(), depth + 1)
    raise TypeError("%s is not JSON" % type(value).__name__)


def cell_of_table(value):
    try:
        return plain(value)
    except TypeError:
        return str(value)


class DataFormatter(BaseFormatter):
    """A pandas DataFrame as {column: [values]}."""
    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = dict

    def __call__(self, value):
        pandas = sys.modules.get("pandas")
        if not pandas or not isinstance(value, getattr(pandas, "DataFrame", ())):
            return super().__call__(value)
        return {str(name): [None if each is pandas.NaT else cell_of_table(each) for each in values]
                for name, values in value.to_dict(orient="list").items()}


class ChartFormatter(BaseFormatter):
    """A matplotlib Figure as what it shows."""
    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = dict

    def __call__(self, value):
        figure = sys.modules.get("matplotlib.figure")
        if not figure or not isinstance(value, figure.Figure):
            return super().__call__(value)
        from . import charts
        try:
            return plain(charts.of_figure(value))
        except Exception:  # a plot we do not understand is still a picture
            return {}


class PlainJSONFormatter(JSONFormatter):
    def __call__(self, value):
        if isinstance(value, (list, dict)):
            try:
                return plain(value), {"expanded": True}
            except TypeError:
                return None
        return super().__call__(value)


# ---- pictures ----

def show_pictures(module):
    """A sandbox has no screen: a picture that is shown or saved to a file becomes a result."""
    image, save = module.Image, module.Image.save

    def save_and_show(self, fp, format=None, **options):  # the names are PIL's
        if isinstance(fp, str):
            display(self)
        return save(self, fp, format, **options)

    image.save = save_and_show
    image.show = lambda self, *_, **__: display(self)


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls back once a module was imported, without importing it itself."""

    def __init__(self, name, done):
        self.name, self.done = name, done

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return spec
        execute, done = spec.loader.exec_module, self.done

        def execute_and_tell(module):
            execute(module)
            done(module)

        spec.loader.exec_module = execute_and_tell
        return spec


def install(shell):
    formatter = shell.display_formatter
    for kind, made in (("e2b/data", DataFormatter), ("e2b/chart", ChartFormatter), ("application/json", PlainJSONFormatter)):
        formatter.formatters[kind] = made(parent=formatter)
    sys.meta_path.insert(0, AfterImport("PIL.Image", show_pictures))
