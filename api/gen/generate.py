#!/usr/bin/env python3
"""Makes lib/model's C structs, schema tables and route tables from api/*.yaml.

    generate.py OUTDIR api/crds.yaml api/native.yaml api/e2b.yaml

Writes OUTDIR/<file>.h and <file>.c for each input, and routes.h, routes.c and openapi.c, openapi.h.
api/README.md describes the schema language. What this program does not know it refuses, so that a schema never
promises what the engine does not check.
"""
import json
import os
import re
import sys

import yaml

KEYWORDS = {
    # of C
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
    "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
    "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "bool",
    # of C++, which the house avoids too
    "class", "delete", "namespace", "new", "operator", "private", "public", "template", "this",
}
KNOWN_KEYS = {
    "type", "format", "enum", "default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
    "maxProperties", "pattern", "items", "properties", "required", "additionalProperties", "description", "nullable",
    "readOnly", "writeOnly", "deprecated", "allOf", "$ref", "x-immutable", "x-immutable-lever", "x-list-key", "x-any", "x-omit-zero",
    "x-inherited",
}
FORMATS = {
    None: "NONE", "quantity": "QUANTITY", "duration": "DURATION", "date-time": "DATE_TIME", "image": "IMAGE",
    "env-name": "ENV_NAME", "dns-label": "DNS_LABEL", "dns-subdomain": "DNS_SUBDOMAIN",
    "int-or-percent": "INT_OR_PERCENT",
}
AUTH = {"none": "NONE", "key": "KEY", "admin": "ADMIN", "session": "SESSION"}
METHODS = ("get", "post", "put", "patch", "delete")
STRING_MAX = 65536
ITEMS_MAX = 10000
MAP_MAX = 1024
NOTICE = "/* Made by api/gen/generate.py from %s; change that instead. */\n"


class Refused(Exception):
    pass


def snake(name):
    name = re.sub(r"(CIDR|URL|ID)s\b", lambda m: m[1].capitalize() + "s", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"[^A-Za-z0-9]+", "_", name).lower().strip("_")


def c_field(name):
    name = snake(name)
    return name + "_" if name in KEYWORDS else name


def c_string(text):
    if text is None:
        return "NULL"
    out = []
    for byte in str(text).encode():
        c = chr(byte)
        if c in '"\\':
            out.append("\\" + c)
        elif c == "\n":
            out.append("\\n")
        elif 32 <= byte < 127:
            out.append(c)
        else:
            out.append("\\%03o" % byte)
    return '"%s"' % "".join(out)


class Schema:
    """One struct: a schema of type object with properties."""

    def __init__(self, doc, name, node):
        self.doc = doc
        self.name = name
        self.node = node
        self.c = "abx__m_" + doc.prefix + snake(name)
        self.fields = []


class Field:
    def __init__(self, name):
        self.name = name
        self.c = c_field(name)
        self.node = {}
        self.array = False
        self.type = None
        self.object = None
        self.enum_c = None
        self.required = False


class Document:
    def __init__(self, path, model):
        self.path = path
        self.model = model
        self.file = os.path.basename(path)
        self.base = os.path.splitext(self.file)[0]
        with open(path, encoding="utf-8") as stream:
            self.yaml = yaml.safe_load(stream)
        self.prefix = self.yaml["info"].get("x-prefix", "")
        self.nodes = self.yaml["components"]["schemas"]
        self.enums = {}  # of their own names: C name to values
        self.schemas = {}  # in order of definition: an object comes before those that hold arrays of it
        self.includes = set()


class Model:
    def __init__(self, paths):
        self.documents = {}
        for path in paths:
            doc = Document(path, self)
            self.documents[doc.file] = doc

    # ---- references ----

    def resolve(self, doc, ref):
        file, _, pointer = ref.partition("#")
        target = self.documents.get(file) if file else doc
        prefix = "/components/schemas/"
        if target is None or not pointer.startswith(prefix) or pointer[len(prefix):] not in target.nodes:
            raise Refused("%s: nothing at %s" % (doc.file, ref))
        return target, pointer[len(prefix):]

    def merged(self, doc, node, where):
        """The node with its allOf folded in: (document its references are relative to, node)."""
        unknown = set(node) - KNOWN_KEYS
        if unknown:
            raise Refused("%s: %s: unknown keys %s" % (doc.file, where, sorted(unknown)))
        if "allOf" not in node:
            return node
        result = {"type": "object", "properties": {}, "required": []}
        for part in node["allOf"]:
            part_doc = doc
            if "$ref" in part:
                part_doc, name = self.resolve(doc, part["$ref"])
                part = part_doc.nodes[name]
            part = self.merged(part_doc, part, where)
            for key, value in part.get("properties", {}).items():
                result["properties"][key] = self.absolute(part_doc, value)
            result["required"] += part.get("required", [])
            if "additionalProperties" in part:
                result["additionalProperties"] = part["additionalProperties"]
        result["properties"].update(node.get("properties", {}))
        result["required"] += node.get("required", [])
        # `required: []` beside an allOf takes what the parts require back.
        if node.get("required") == []:
            result["required"] = []
        if "description" in node:
            result["description"] = node["description"]
        return result

    def absolute(self, doc, node):
        """The node with references that name their file, so that it may live in another document."""
        if isinstance(node, list):
            return [self.absolute(doc, item) for item in node]
        if not isinstance(node, dict):
            return node
        return {key: (doc.file + value if key == "$ref" and value.startswith("#") else self.absolute(doc, value))
                for key, value in node.items()}

    # ---- structs ----

    def build(self):
        for doc in self.documents.values():
            for name in doc.nodes:
                if self.is_struct(doc, doc.nodes[name]):
                    self.schema(doc, name, doc.nodes[name], [])
        seen = {}
        for doc in self.documents.values():
            for schema in doc.schemas.values():
                if schema.c in seen:
                    raise Refused("%s and %s both become %s" % (seen[schema.c], schema.name, schema.c))
                seen[schema.c] = schema.name

    def is_struct(self, doc, node):
        if "$ref" in node:
            return False
        return "properties" in node or "allOf" in node

    def schema(self, doc, name, node, above):
        if name in doc.schemas:
            return doc.schemas[name]
        if (doc.file, name) in above:
            raise Refused("%s: %s contains itself" % (doc.file, name))
        node = self.merged(doc, node, name)
        schema = Schema(doc, name, node)
        for key in node.get("required", []):
            if key not in node["properties"]:
                raise Refused("%s: %s requires %s, which it does not have" % (doc.file, name, key))
        for key, value in node["properties"].items():
            field = self.field(doc, name, key, value, above + [(doc.file, name)])
            field.required = key in node.get("required", [])
            schema.fields.append(field)
        for field in schema.fields:
            key = field.node.get("x-list-key")
            if key and (not field.array or field.type != "OBJECT" or
                        key not in [f.name for f in field.object.fields if f.type == "STRING" and not f.array]):
                raise Refused("%s: %s.%s: x-list-key %s is not a string of its items" % (doc.file, name, field.name,
                                                                                       key))
        doc.schemas[name] = schema
        return schema

    def field(self, doc, owner, key, node, above):
        where = "%s.%s" % (owner, key)
        field = Field(key)
        outer = node
        if "$ref" in node:
            # Keys beside a $ref are the field's own.
            target, name = self.resolve(doc, node["$ref"])
            outer = dict(target.nodes[name])
            outer.update({k: v for k, v in node.items() if k != "$ref"})
            if self.is_struct(target, target.nodes[name]):
                field.node = outer
                field.type = "OBJECT"
                field.object = self.schema(target, name, target.nodes[name], above)
                if target is not doc:
                    doc.includes.add(target.base)
                return field
            outer = self.absolute(target, outer)
            self.named_enum(doc, target, name, field)
        outer = self.merged(doc, outer, where)
        field.node = outer
        if outer.get("type") == "array":
            field.array = True
            self.type_of(doc, owner, key, field, outer["items"], where + "[]", above)
            if field.type not in ("STRING", "INT32", "INT64", "OBJECT"):
                raise Refused("%s: %s: arrays of that are not offered" % (doc.file, where))
        else:
            self.type_of(doc, owner, key, field, outer, where, above)
        return field

    def named_enum(self, doc, target, name, field):
        """A schema that is an enum gives its name to all fields that refer to it."""
        if "enum" not in target.nodes[name]:
            return
        field.enum_c = "abx__m_" + target.prefix + snake(name)
        target.enums[field.enum_c] = target.nodes[name]["enum"]
        if target is not doc:
            doc.includes.add(target.base)

    def type_of(self, doc, owner, key, field, node, where, above):
        if "$ref" in node:
            target, name = self.resolve(doc, node["$ref"])
            if not self.is_struct(target, target.nodes[name]):
                self.named_enum(doc, target, name, field)
                return self.type_of(target, owner, key, field, target.nodes[name], where, above)
            field.type = "OBJECT"
            field.object = self.schema(target, name, target.nodes[name], above)
            if target is not doc:
                doc.includes.add(target.base)
            return None
        unknown = set(node) - KNOWN_KEYS
        if unknown:
            raise Refused("%s: %s: unknown keys %s" % (doc.file, where, sorted(unknown)))
        field.item = node
        kind = node.get("type")
        extra = node.get("additionalProperties")
        if node.get("x-any"):
            field.type = "ANY"
        elif kind == "string" and "enum" in node:
            field.type = "ENUM"
            field.enum_c = field.enum_c or "abx__m_%s%s_%s" % (doc.prefix, snake(owner), snake(key))
        elif kind == "string" and node.get("format") == "password":
            field.type = "SECRET"
        elif kind == "string" and node.get("format") in FORMATS:
            field.type = "STRING"
        elif kind == "boolean":
            field.type = "BOOL"
        elif kind == "integer" and node.get("format") in ("int32", "int64"):
            field.type = node["format"].upper()
        elif kind == "number":
            field.type = "NUMBER"
        elif kind == "object" and "properties" in node:
            field.type = "OBJECT"
            field.object = self.schema(doc, owner + key[0].upper() + key[1:], node, above)
        elif kind == "object" and isinstance(extra, dict) and extra.get("type") == "string" and \
                extra.get("format") in FORMATS:
            field.type = "MAP"
        else:
            raise Refused("%s: %s: a shape the engine does not have" % (doc.file, where))
        return None


# ---- C ----

C_TYPES = {"STRING": "char *", "SECRET": "abx__secret *", "BOOL": "bool ", "INT32": "int32_t ", "INT64": "int64_t ",
           "NUMBER": "double ", "MAP": "abx__map ", "ANY": "json_object *"}
PRESENCE = ("BOOL", "INT32", "INT64", "NUMBER")


def enum_constants(enum_c, values):
    used = set()
    for value in values:
        name = re.sub(r"[^A-Z0-9]+", "_", snake(value).upper()) or "EMPTY"
        if name in used:
            raise Refused("%s: two values become %s" % (enum_c, name))
        used.add(name)
        yield "%s_%s" % (enum_c.upper(), name), value


def enum_text(enum_c, values):
    out = ["enum %s {" % enum_c]
    out += ["\t%s = %d," % (constant, number) for number, (constant, _) in enumerate(enum_constants(enum_c, values), 1)]
    return "\n".join(out) + "\n};\n"


def enum_names(enum_c, values):
    return "static const char *const %s_names[] = { %s, NULL };" % (enum_c, ", ".join(c_string(v) for v in values))


def own_enums(schema):
    """Enums that belong to a field of this struct alone."""
    return [field for field in schema.fields if field.type == "ENUM" and
            not any(field.enum_c in doc.enums for doc in schema.doc.model.documents.values())]


def struct_text(schema):
    out = []
    for field in own_enums(schema):
        out.append(enum_text(field.enum_c, field.item["enum"]).rstrip())
    out.append("typedef struct %s {" % schema.c)
    for field in schema.fields:
        if field.type == "ENUM":
            base = "enum %s " % field.enum_c
        elif field.type == "OBJECT":
            base = "struct %s %s" % (field.object.c, "" if field.array else "*")
        else:
            base = C_TYPES[field.type]
        if field.array:
            out.append("\t%s*%s;" % (base, field.c))
            out.append("\tsize_t n_%s;" % field.c.rstrip("_"))
        else:
            out.append("\t%s%s;" % (base, field.c))
            if field.type in PRESENCE:
                out.append("\tbool has_%s;" % field.c.rstrip("_"))
    if not schema.fields:
        out.append("\tchar empty;")
    out.append("} %s;" % schema.c)
    out.append("ABX__SCHEMA_TYPED(%s)" % schema.c)
    return "\n".join(out) + "\n"


def bounds(field):
    node = field.item if field.array else field.node
    if field.type in ("STRING", "SECRET"):
        return node.get("minLength", 0), node.get("maxLength", STRING_MAX)
    if field.type == "MAP":
        return 0, node.get("maxProperties", MAP_MAX)
    if field.type == "INT32":
        return node.get("minimum", -2**31), node.get("maximum", 2**31 - 1)
    if field.type == "INT64":
        return node.get("minimum", -2**63), node.get("maximum", 2**63 - 1)
    if any(key in node for key in ("minimum", "maximum", "minLength", "maxLength")):
        raise Refused("%s: bounds are not offered for this type" % field.name)
    return 0, 0


def c_int64(value):
    if value == -2**63:
        return "INT64_MIN"
    if value == 2**63 - 1:
        return "INT64_MAX"
    return "%d" % value if abs(value) < 2**31 else "INT64_C(%d)" % value


def default_of(field, entry):
    node = field.node
    if "default" not in node:
        return False
    value = node["default"]
    if field.type == "STRING" and isinstance(value, str):
        entry["default_text"] = c_string(value)
    elif field.type == "ENUM" and value in field.item["enum"]:
        entry["default_number"] = str(field.item["enum"].index(value) + 1)
    elif field.type == "BOOL" and isinstance(value, bool):
        entry["default_number"] = str(int(value))
    elif field.type in ("INT32", "INT64") and isinstance(value, int):
        entry["default_number"] = c_int64(value)
    elif field.type == "OBJECT" and value == {} and not field.array:
        pass
    elif field.array and value == []:
        return False
    else:
        raise Refused("%s: default %r does not fit" % (field.name, value))
    return True


def field_text(schema, field):
    inner = field.item if field.type not in ("OBJECT",) else {}
    entry = {"name": c_string(field.name)}
    flags = ["ABX__FIELD_" + name for name, on in (
        ("REQUIRED", field.required), ("ARRAY", field.array), ("IMMUTABLE", field.node.get("x-immutable")),
        ("NULLABLE", field.node.get("nullable")), ("READ_ONLY", field.node.get("readOnly")),
        ("OMIT_ZERO", field.node.get("x-omit-zero")), ("DEFAULT", default_of(field, entry))) if on]
    if field.node.get("description"):
        entry["description"] = c_string(field.node["description"])
    if field.type == "OBJECT":
        entry["object"] = "&%s_schema" % field.object.c
    if field.type == "ENUM":
        entry["names"] = field.enum_c + "_names"
    if field.node.get("x-immutable-lever"):
        entry["lever"] = c_string(field.node["x-immutable-lever"])
    if inner.get("pattern"):
        entry["pattern"] = c_string(inner["pattern"])
    if field.node.get("x-list-key"):
        entry["list_key"] = c_string(field.node["x-list-key"])
    low, high = bounds(field) if field.type != "OBJECT" else (0, 0)
    if low:
        entry["minimum"] = c_int64(low)
    if high:
        entry["maximum"] = c_int64(high)
    if field.array:
        entry["min_items"] = str(field.node.get("minItems", 0))
        entry["max_items"] = str(field.node.get("maxItems", ITEMS_MAX))
        entry["aux"] = "offsetof(%s, n_%s)" % (schema.c, field.c.rstrip("_"))
    elif field.type in PRESENCE:
        entry["aux"] = "offsetof(%s, has_%s)" % (schema.c, field.c.rstrip("_"))
    entry["offset"] = "offsetof(%s, %s)" % (schema.c, field.c)
    if flags:
        entry["flags"] = " | ".join(flags)
    entry["type"] = "ABX__SCHEMA_" + field.type
    text_format = inner.get("format")
    if field.type == "MAP":
        text_format = inner["additionalProperties"].get("format")
    if field.type in ("STRING", "MAP") and text_format:
        entry["format"] = "ABX__FORMAT_" + FORMATS[text_format]
    return "\t{ " + ",\n\t  ".join(".%s = %s" % item for item in entry.items()) + " },"


def table_text(schema):
    out = []
    for field in own_enums(schema):
        out.append(enum_names(field.enum_c, field.item["enum"]))
    if schema.fields:
        out.append("static const abx__schema_field %s_fields[] = {" % schema.c)
        out += [field_text(schema, field) for field in schema.fields]
        out.append("};")
    out.append("const abx__schema %s_schema = {" % schema.c)
    out.append("\t.name = %s," % c_string(schema.name))
    if schema.node.get("description"):
        out.append("\t.description = %s," % c_string(schema.node["description"]))
    if schema.fields:
        out.append("\t.fields = %s_fields," % schema.c)
        out.append("\t.count = %d," % len(schema.fields))
    out.append("\t.size = sizeof(%s)," % schema.c)
    out.append("};\n")
    return "\n".join(out)


def header_text(doc):
    guard = "ABX_MODEL_GEN_%s_H" % doc.base.upper().replace("-", "_")
    out = [NOTICE % ("api/" + doc.file), "#ifndef %s\n#define %s\n" % (guard, guard)]
    out += ['#include "model/gen/%s.h"\n' % name for name in sorted(doc.includes)]
    out.append('#include "model/schema.h"\n\n')
    out += [enum_text(*enum) + "\n" for enum in doc.enums.items()]
    out += [struct_text(schema) + "\n" for schema in doc.schemas.values()]
    out.append("#endif\n")
    return "".join(out)


def source_text(doc):
    out = [NOTICE % ("api/" + doc.file), '#include "model/gen/%s.h"\n\n' % doc.base]
    used = {field.enum_c: field.item["enum"] for schema in doc.schemas.values() for field in schema.fields
            if field.type == "ENUM" and field not in own_enums(schema)}
    out += [enum_names(*enum) + "\n" for enum in used.items()]
    out += [table_text(schema) + "\n" for schema in doc.schemas.values()]
    return "".join(out)


# ---- routes ----

def body_schema(model, doc, content):
    """The struct of a JSON body, or NULL when it is an array, has no body, or is not JSON."""
    node = (content or {}).get("application/json", {}).get("schema", {})
    if "$ref" not in node:
        return "NULL"
    target, name = model.resolve(doc, node["$ref"])
    return "&%s_schema" % target.schemas[name].c


def routes(model, doc):
    servers = doc.yaml.get("servers", [{"url": ""}])
    base = servers[0]["url"].rstrip("/")
    for path, item in doc.yaml["paths"].items():
        for method in METHODS:
            op = item.get(method)
            if op is None:
                continue
            success = [int(code) for code in op["responses"] if int(code) < 300]
            if not success:
                raise Refused("%s: %s %s: no success" % (doc.file, method, path))
            response = op["responses"].get(str(success[0])) or op["responses"][success[0]]
            yield (method.upper(), op.get("x-base", base) + path, op["operationId"],
                   body_schema(model, doc, op.get("requestBody", {}).get("content")),
                   body_schema(model, doc, response.get("content")), success[0],
                   AUTH[op.get("x-auth", doc.yaml["info"].get("x-auth", "key"))],
                   op.get("x-unknown-fields") == "refuse")


def routed(model):
    return [doc for doc in model.documents.values() if doc.yaml["paths"]]


def routes_header(model):
    out = [NOTICE % "the files of api/", "#ifndef ABX_MODEL_GEN_ROUTES_H\n#define ABX_MODEL_GEN_ROUTES_H\n",
           '#include "model/schema.h"\n\n']
    for doc in routed(model):
        out.append("/* In the order of api/%s; a literal segment beats a {parameter}. */\n" % doc.file)
        out.append("#define ABX__M_%s_ROUTE_COUNT %d\n" % (doc.base.upper(), len(list(routes(model, doc)))))
        out.append("extern const abx__route abx__m_%s_routes[ABX__M_%s_ROUTE_COUNT];\n\n" % (doc.base,
                                                                                           doc.base.upper()))
    out.append("#endif\n")
    return "".join(out)


def routes_source(model):
    out = [NOTICE % "the files of api/"]
    out += ['#include "model/gen/%s.h"\n' % doc.base for doc in model.documents.values()]
    out.append('#include "model/gen/routes.h"\n')
    for doc in routed(model):
        out.append("\nconst abx__route abx__m_%s_routes[ABX__M_%s_ROUTE_COUNT] = {\n" % (doc.base, doc.base.upper()))
        seen = set()
        for method, path, operation, request, response, success, auth, strict in routes(model, doc):
            if operation in seen:
                raise Refused("%s: %s is there twice" % (doc.file, operation))
            seen.add(operation)
            out.append("\t{ %s, %s, %s,\n\t  %s, %s, %d, ABX__AUTH_%s, %s },\n" % (
                c_string(method), c_string(path), c_string(operation), request, response, success, auth,
                "true" if strict else "false"))
        out.append("};\n")
    return "".join(out)


# ---- /openapi.json ----

def bundled(model, doc):
    """The document as plain JSON: schemas of other files copied in, and each allOf folded into the one object it is."""
    result = json.loads(json.dumps(doc.yaml, default=str))
    pending = [result]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict):
            if "allOf" in node:
                folded = json.loads(json.dumps(model.merged(doc, node, "allOf"), default=str))
                node.clear()
                node.update({key: value for key, value in folded.items() if value != [] or key != "required"})
            ref = node.get("$ref")
            if isinstance(ref, str) and not ref.startswith("#"):
                target, name = model.resolve(doc, ref)
                copied = target.base.capitalize() + name if target is not doc and name in doc.nodes else name
                node["$ref"] = "#/components/schemas/" + copied
                if copied not in result["components"]["schemas"]:
                    copy = json.loads(json.dumps(model.absolute(target, target.nodes[name]), default=str))
                    result["components"]["schemas"][copied] = copy
                    pending.append(copy)
            pending += [value for value in node.values() if isinstance(value, (dict, list))]
    return json.dumps(result, separators=(",", ":"), ensure_ascii=True)


def openapi_header(model):
    out = [NOTICE % "the files of api/", "#ifndef ABX_MODEL_GEN_OPENAPI_H\n#define ABX_MODEL_GEN_OPENAPI_H\n",
           "#include <stddef.h>\n\n/* The specification as JSON text, NUL-terminated. */\n"]
    for doc in routed(model):
        out.append("extern const char abx__m_%s_openapi[];\nextern const size_t abx__m_%s_openapi_len;\n" % (doc.base,
                                                                                                         doc.base))
    out.append("\n#endif\n")
    return "".join(out)


def openapi_source(model):
    out = [NOTICE % "the files of api/", '#include "model/gen/openapi.h"\n']
    for doc in routed(model):
        text = bundled(model, doc)
        out.append("\nconst char abx__m_%s_openapi[] =\n" % doc.base)
        pieces = [text[i:i + 96] for i in range(0, len(text), 96)]
        out.append("\n".join("\t" + c_string(piece) for piece in pieces) + ";\n")
        out.append("const size_t abx__m_%s_openapi_len = sizeof(abx__m_%s_openapi) - 1;\n" % (doc.base, doc.base))
    return "".join(out)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
        stream.write(text)


def main():
    folder, paths = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    try:
        model = Model(paths)
        model.build()
        for doc in model.documents.values():
            write(folder, doc.base + ".h", header_text(doc))
            write(folder, doc.base + ".c", source_text(doc))
        write(folder, "routes.h", routes_header(model))
        write(folder, "routes.c", routes_source(model))
        write(folder, "openapi.h", openapi_header(model))
        write(folder, "openapi.c", openapi_source(model))
    except Refused as refused:
        print("generate.py: %s" % refused, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
