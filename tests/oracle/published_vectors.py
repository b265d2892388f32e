"""Reads vector files that lie outside the repository and turns them into batch cases.

Three dialects of JSON are understood: typed JSON with compact test data (`rep`, `mapgen`, `nest`), the plain JSON of the
published cache-key files, and the tagged JSON (`$set`, `$bytes`, ...) of the published interop files.
"""

import datetime
import json
import pathlib
import struct

import oracle
from batch import Expected


def expand(value):
    """Typed JSON without compact test data: what the batch command reads."""
    kind = value["t"]
    if kind == "mapgen":
        item = expand(value["val"])
        return {"t": "map", "v": [[{"t": "str", "v": value["fmt"] % i}, item] for i in range(value["n"])]}
    if kind == "nest":
        inner = expand(value["leaf"])
        for _ in range(value["depth"]):
            inner = {"t": "list", "v": [inner]} if value["kind"] == "list" else {"t": "map", "v": [[{"t": "str", "v": "a"}, inner]]}
        return inner
    full = {k: v for k, v in value.items() if k != "rep"}
    if "rep" in value:
        what, count = value["rep"]
        if kind == "array":
            full["le"] = what * count
        else:
            full["v"] = what * count if isinstance(what, str) else [expand(what)] * count
    elif kind == "map":
        full["v"] = [[expand(k), expand(v)] for k, v in value["v"]]
    elif isinstance(value.get("v"), list):
        full["v"] = [expand(v) for v in value["v"]]
    elif isinstance(value.get("v"), dict):
        full["v"] = expand(value["v"])
    return full


def from_tagged(value):
    """Tagged JSON to typed JSON: an object with one `$` key is a tag, everything else maps directly."""
    if value is None:
        return {"t": "none"}
    if isinstance(value, bool):
        return {"t": "bool", "v": value}
    if isinstance(value, int):
        return {"t": "int", "v": str(value)}
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, str):
        return {"t": "str", "v": value}
    if isinstance(value, list):
        return {"t": "list", "v": [from_tagged(v) for v in value]}
    tag = next(iter(value)) if len(value) == 1 else None
    if tag == "$set":
        return {"t": "set", "v": [from_tagged(v) for v in value[tag]]}
    if tag == "$bytes":
        return {"t": "bytes", "v": value[tag]}
    if tag == "$uuid":
        return {"t": "uuid", "v": value[tag]}
    if tag == "$int":
        return {"t": "int", "v": value[tag]}
    if tag == "$float":
        return _double(float(value[tag]))
    if tag == "$datetime":
        moment = datetime.datetime.fromisoformat(value[tag])
        offset = moment.utcoffset()
        parts = [moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond]
        return {"t": "datetime", "c": parts, "off_us": None if offset is None else offset // datetime.timedelta(microseconds=1)}
    return {"t": "map", "v": [[{"t": "str", "v": k}, from_tagged(v)] for k, v in value.items()]}


def _double(number):
    return {"t": "f64", "v": "0x%016x" % struct.unpack(">Q", struct.pack(">d", number))[0]}


def load(directory):
    """Yields (scheme, variant, case, expected) for every key and value vector of the directory."""
    directory = pathlib.Path(directory)
    yield from _failover(_read(directory / "failover_keys.json"))
    cachekit = directory / "cachekit"
    yield from _auto_mode(_read(cachekit / "auto_mode.json"))
    yield from _interop(_read(cachekit / "interop.json"))
    for path in sorted([*cachekit.glob("published/*cache-keys*.json"), *cachekit.glob("protocol-*/cache-keys-*.json")]):
        # The older files are the published document's dialect; all of them use only what every dialect spells alike.
        dialects = ("current",) if path.parent.name.startswith("protocol-") else ("current", "py_0_17", "v1_0")
        yield from _cache_keys(path.name, _read(path), dialects)
    for path in sorted([*cachekit.glob("published/*interop-mode*.json"), *cachekit.glob("protocol-*/interop-mode-*.json")]):
        yield from _interop_mode(path.name, _read(path))


def _read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def _failover(vectors):
    for number, vector in enumerate(vectors):
        args = vector["args_json"]
        case = {
            "id": "failover/%d/%s" % (number, vector["args_description"]),
            "name": vector["name"],
            "domain": vector["domain"],
            "args": None if args is None else [_java(a) for a in args],
        }
        yield "failover", "exact", case, Expected(answer={"raw_key": vector["raw_key"], "uuid": vector["uuid"]})


def _java(value):
    """The failover file spells an enumerator's `v` as a bare name, which is no typed value."""
    if value["t"] == "enum":
        return value
    return expand(value)


def _auto_case(vector):
    return {
        "id": vector["id"],
        "namespace": vector["namespace"],
        "module": vector["module"],
        "qualname": vector["qualname"],
        "args": [expand(a) for a in vector["args"]],
        "kwargs": [[name, expand(v)] for name, v in vector["kwargs"]],
        "integrity": vector["integrity"],
        "serializer": vector["serializer"],
    }


def _auto_mode(file):
    for vector in file["vectors"]:
        case = _auto_case(vector)
        for dialect, field in (("py_0_17", "key"), ("v1_0", "key_v050"), ("current", "key_v020")):
            if dialect == "current" and "key_v020_error" in vector:
                yield "cachekit-auto", dialect, case, Expected(error=True)
                continue
            answer = {"key": vector.get(field, vector["key"]), "args_hash": vector["args_hash"]}
            if "msgpack_hex" in vector:
                answer["msgpack_hex"] = vector["msgpack_hex"]
            yield "cachekit-auto", dialect, case, Expected(answer=answer, partial=True)
    for vector in file["rejects"]:
        for dialect in ("current", "py_0_17", "v1_0"):
            yield "cachekit-auto", dialect, _auto_case(vector), Expected(error=True)
    for group in file["collision_groups"]:
        for number, member in enumerate(group["members"]):
            case = _auto_case(
                {
                    "id": "collision/%s/%d" % (group["name"], number),
                    "namespace": member.get("ns", "test"),
                    "module": member.get("module", "app.mod"),
                    "qualname": member.get("qualname", "fn"),
                    "args": member["args"],
                    "kwargs": member.get("kwargs", []),
                    "integrity": member.get("integrity", True),
                    "serializer": member.get("serializer", "std"),
                }
            )
            yield "cachekit-auto", "py_0_17", case, Expected(answer={"key": group["key"]}, partial=True)
    # Their arguments are not given, only keys that some vectors have: nothing to run, but they must be what they claim.
    for pair in file["must_differ"]:
        if pair["key_a"] == pair["key_b"]:
            raise AssertionError("must differ: " + pair["name"])


def _interop(file):
    for vector in file["key_vectors"] + file["key_rejects"]:
        case = {k: vector[k] for k in ("id", "namespace", "operation")}
        case["args"] = [expand(a) for a in vector["args"]]
        if "error" in vector:
            yield "interop", "", case, Expected(error=True)
            continue
        answer = {k: vector[k] for k in ("key", "args_hash", "canonical_hex") if k in vector}
        yield "interop", "", case, Expected(answer=answer, partial=True)
    for vector in file["value_vectors"] + file["value_rejects"]:
        case = {"id": vector["id"], "value": expand(vector["value"])}
        if "error" in vector:
            yield "interop-value", "", case, Expected(error=True)
            continue
        # Long values come with their length only; the oracle knows the bytes.
        encoded = vector["hex"] if "hex" in vector else oracle.interop_value(case)["hex"]
        if len(encoded) != 2 * vector["len"]:
            raise AssertionError("wrong length: " + vector["id"])
        yield "interop-value", "", case, Expected(answer={"hex": encoded})


def _cache_keys(name, file, dialects):
    for vector in file["vectors"] + file.get("error_vectors", []):
        case = {
            "id": name + "/" + vector["name"],
            "namespace": vector["namespace"],
            "module": vector["function_module"],
            "qualname": vector["function_qualname"],
            "args": [from_tagged(a) for a in vector["args"]],
            "kwargs": [[k, from_tagged(v)] for k, v in vector["kwargs"].items()],
            "integrity": vector["integrity_checking"],
            "serializer": vector["serializer_type"],
        }
        for dialect in dialects:
            if "expected_key" in vector:
                yield "cachekit-auto", dialect, case, Expected(answer={"key": vector["expected_key"]}, partial=True)
            else:
                yield "cachekit-auto", dialect, case, Expected(error=True)
    for vector in file.get("serializer_object_vectors", []):
        case = {
            "id": name + "/" + vector["name"],
            "namespace": None,
            "module": "m",
            "qualname": "f",
            "args": [],
            "kwargs": [],
            "integrity": True,
            "serializer": vector["key_identity"],
        }
        empty_call = "f9cf3864b6e929eb73f84cf6d69409e0bd7575f8cf6feafe3a543b0f7267b2b2"
        key = "func:m.f:args:%s:1%s" % (empty_call, vector["code"])
        yield "cachekit-auto", "current", case, Expected(answer={"key": key}, partial=True)


def _interop_mode(name, file):
    for vector in file["key_vectors"] + file["error_vectors"]:
        case = {
            "id": name + "/" + vector["name"],
            "namespace": vector.get("namespace", "t"),
            "operation": vector.get("operation", "op"),
            "args": [from_tagged(a) for a in vector["args"]],
        }
        if "expected_key" not in vector:
            yield "interop", "", case, Expected(error=True)
            continue
        answer = {"key": vector["expected_key"], "args_hash": vector["args_hash"], "canonical_hex": vector["canonical_args_hex"]}
        yield "interop", "", case, Expected(answer=answer)
    for vector in file["value_vectors"]:
        case = {"id": name + "/" + vector["name"], "value": from_tagged(vector["value"])}
        yield "interop-value", "", case, Expected(answer={"hex": vector["canonical_msgpack_hex"]})
