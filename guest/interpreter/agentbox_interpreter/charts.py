"""What a matplotlib Figure shows, as plain data: line, scatter, bar, pie and box-and-whisker charts, several of them in a
"superchart", or "unknown". The keys are those the SDKs' chart classes read.
"""
import re

from matplotlib import collections, container, dates, patches

POINTS_MAX = 100000  # more than that is a picture only
UNIT = re.compile(r"\s\((.+?)\)|\[(.+?)\]")


class TooMuch(Exception):
    pass


def rounded(number):
    """Without the noise of floating point."""
    return float("%.9g" % float(number))


def value_of(point):
    """A coordinate as the user gave it: text, a date, or a number."""
    if isinstance(point, str):
        return point
    if hasattr(point, "isoformat"):
        return point.isoformat()
    if type(point).__name__ == "datetime64":
        return str(point.astype("datetime64[s]"))
    return float(point)


def points_of(xs, ys):
    if len(xs) > POINTS_MAX:
        raise TooMuch()
    return [[value_of(x), value_of(y)] for x, y in zip(xs, ys)]


def label_of(artist, prefix, word):
    """A label the user gave, or a name by number where matplotlib made one."""
    label = str(artist.get_label())
    return "%s %s" % (word, label[len(prefix):]) if label.startswith(prefix) else label


# ---- axes ----

def unit_of(label):
    found = UNIT.search(label or "")
    return (found.group(1) or found.group(2)) if found else None


def frame(ax, kind, is_turned=False):
    """Title and axes. Of a turned chart (horizontal bars) x is still the axis of the categories."""
    x, y = ax.get_xlabel() or None, ax.get_ylabel() or None
    if is_turned:
        x, y = y, x
    return {"type": kind, "title": ax.get_title() or None, "elements": [], "x_label": x, "y_label": y,
            "x_unit": unit_of(x), "y_unit": unit_of(y)}


def converter_module(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    return type(converter).__module__


def scale(axis, name):
    """Ticks, their labels and the kind of one axis; name is x or y."""
    module = converter_module(axis)
    ticks = [float(tick) for tick in axis.get_majorticklocs()]
    kind = axis.get_scale()
    if module == "matplotlib.dates":
        kind, ticks = "datetime", [dates.num2date(tick).isoformat() for tick in ticks]
    elif module == "matplotlib.category":
        kind = "categorical"
    return {name + "_ticks": ticks, name + "_tick_labels": [label.get_text() for label in axis.get_ticklabels()],
            name + "_scale": kind}


def tick_label_at(axis, position):
    for tick, label in zip(axis.get_majorticklocs(), axis.get_ticklabels()):
        if abs(tick - position) < 1e-6 and label.get_text():
            return label.get_text()
    return "%g" % position


# ---- kinds of charts ----

def data_lines(ax):
    """Without lines across the whole chart, which are drawn in other coordinates."""
    return [line for line in ax.lines if line.get_transform() == ax.transData]


def line_chart(ax):
    chart = {**frame(ax, "line"), **scale(ax.xaxis, "x"), **scale(ax.yaxis, "y")}
    chart["elements"] = [{"label": label_of(line, "_child", "Line"),
                          "points": points_of(line.get_xdata(orig=True), line.get_ydata(orig=True))}
                         for line in data_lines(ax)]
    return chart


def scatter_chart(ax):
    chart = {**frame(ax, "scatter"), **scale(ax.xaxis, "x"), **scale(ax.yaxis, "y")}
    chart["elements"] = [{"label": label_of(each, "_child", "Points"), "points": points_of(*each.get_offsets().T)}
                         for each in ax.collections]
    return chart


def bar_chart(ax):
    bars = [each for each in ax.containers if isinstance(each, container.BarContainer)]
    is_turned = getattr(bars[0], "orientation", None) == "horizontal"
    chart = frame(ax, "bar", is_turned)
    axis = ax.yaxis if is_turned else ax.xaxis
    if sum(len(each) for each in bars) > POINTS_MAX:
        raise TooMuch()
    for group in bars:
        for bar in group:
            centre = bar.get_y() + bar.get_height() / 2 if is_turned else bar.get_x() + bar.get_width() / 2
            chart["elements"].append({"label": tick_label_at(axis, centre), "group": label_of(group, "_container", "Group"),
                                      "value": rounded(bar.get_width() if is_turned else bar.get_height())})
    return chart


def pie_chart(ax):
    return {"type": "pie", "title": ax.get_title() or None,
            "elements": [{"label": str(wedge.get_label()), "angle": abs(float("%.6g" % (wedge.theta2 - wedge.theta1))),
                          "radius": rounded(wedge.r)} for wedge in ax.patches]}


def box(ax, patch, is_turned):
    """One box: its edges are the quartiles; lines over it are the median, the whiskers, and points outside."""
    def across_along(points):
        return (points[:, 1], points[:, 0]) if is_turned else (points[:, 0], points[:, 1])

    across, along = across_along(patch.get_path().vertices)
    left, right, low, high = across.min(), across.max(), along.min(), along.max()
    found = {"label": tick_label_at(ax.yaxis if is_turned else ax.xaxis, (left + right) / 2), "min": low,
             "first_quartile": low, "median": low, "third_quartile": high, "max": high, "outliers": []}
    for line in ax.lines:
        xs, ys = across_along(line.get_xydata())
        if not len(xs) or xs.min() < left or xs.max() > right:
            continue
        if line.get_linestyle() == "None":
            found["outliers"] += [rounded(y) for y in ys]
        elif xs.min() == xs.max():
            found["min"], found["max"] = min(found["min"], ys.min()), max(found["max"], ys.max())
        elif ys.min() == ys.max() and low <= ys.min() <= high and xs.max() - xs.min() > (right - left) * 0.9:
            found["median"] = ys.min()
    return {name: rounded(value) if name not in ("label", "outliers") else value for name, value in found.items()}


def is_lying(ax):
    """A lying box has its whiskers on its left and right: lines level with its middle."""
    ys = ax.patches[0].get_path().vertices[:, 1]
    middle = (ys.min() + ys.max()) / 2
    return any(len(line.get_ydata()) == 2 and abs(line.get_ydata() - middle).max() < 1e-9 and
               (line.get_xdata()[0] != line.get_xdata()[1]) and not is_over(line, ax.patches[0]) for line in data_lines(ax))


def is_over(line, patch):
    xs = patch.get_path().vertices[:, 0]
    return xs.min() <= min(line.get_xdata()) and max(line.get_xdata()) <= xs.max()


def box_chart(ax):
    is_turned = is_lying(ax)
    chart = frame(ax, "box_and_whisker", is_turned)
    chart["elements"] = [box(ax, patch, is_turned) for patch in ax.patches]
    return chart


def all_are(artists, kind):
    return len(artists) > 0 and all(isinstance(each, kind) for each in artists)


def of_axes(ax):
    lines, shapes, clouds = data_lines(ax), list(ax.patches), list(ax.collections)
    if not ax.images:
        if lines and not shapes and not clouds:
            return line_chart(ax)
        if all_are(clouds, collections.PathCollection) and not shapes and not lines:
            return scatter_chart(ax)
        if all_are(shapes, patches.Wedge) and not lines and not clouds:
            return pie_chart(ax)
        if all_are(shapes, patches.PathPatch) and lines and not clouds:
            return box_chart(ax)
        if all_are(shapes, patches.Rectangle) and any(isinstance(each, container.BarContainer) for each in ax.containers):
            return bar_chart(ax)
    return {"type": "unknown", "title": ax.get_title() or None, "elements": []}


def of_figure(figure):
    axes = figure.get_axes()
    if not any(ax.has_data() for ax in axes):
        return {}
    if len(axes) == 1:
        return of_axes(axes[0])
    suptitle = getattr(figure, "_suptitle", None)
    return {"type": "superchart", "title": suptitle.get_text() if suptitle else None,
            "elements": [of_axes(ax) for ax in axes]}
