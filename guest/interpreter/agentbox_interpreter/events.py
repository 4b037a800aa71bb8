"""What a kernel says (Jupyter's messages) as the lines the SDKs read: one JSON object each, told apart by `type`."""

# Kinds of data a result may hold, and the key each has in a result. Everything else goes under `extra`.
KEYS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}

# One line at most this much text; longer output is several.
TEXT_MAX = 1 << 20

KEEPALIVE = {"type": "keepalive"}
END = {"type": "end_of_execution"}


def error(name, value, traceback=""):
    return {"type": "error", "name": name, "value": value, "traceback": traceback}


def unquoted(text):
    """A string's own text: what is shown of 'x' is x."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def result(data, is_main):
    out = {"type": "result", "is_main_result": is_main}
    extra = {}
    for kind, value in data.items():
        if value is None:
            continue
        if kind in KEYS:
            out[KEYS[kind]] = unquoted(value) if kind == "text/plain" and isinstance(value, str) else value
        else:
            extra[kind] = value
    out["extra"] = extra
    return out


def stream(content, date):
    text = content.get("text", "")
    stamp = date.isoformat() if hasattr(date, "isoformat") else str(date)
    for start in range(0, len(text), TEXT_MAX):
        yield {"type": content["name"], "text": text[start:start + TEXT_MAX], "timestamp": stamp}


def of_message(message):
    """The lines one message becomes: none, one, or several."""
    kind, content = message["header"]["msg_type"], message["content"]
    if kind == "stream":
        return list(stream(content, message["header"]["date"]))
    if kind == "execute_result":
        return [result(content["data"], True)]
    if kind == "display_data":
        return [result(content["data"], False)]
    if kind == "execute_input":
        return [{"type": "number_of_executions", "execution_count": content["execution_count"]}]
    if kind == "error":
        return [error(content["ename"], content["evalue"], "\n".join(content["traceback"]))]
    return []
