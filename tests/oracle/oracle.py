"""An independent implementation of every key scheme, written from the published formats.

It shares nothing with the library: hashes come from hashlib, MessagePack from msgpack, paths from pathlib, decimals from
decimal, moments from datetime. Input is typed JSON (parsed), output is what `holdfast key batch` prints, or `Refused`.
"""

import datetime
import decimal
import hashlib
import pathlib
import re
import struct
import sys
import uuid

import msgpack

import java_text

# Values may nest several hundred levels deep; these walks are recursive.
sys.setrecursionlimit(20000)

INT_MIN, INT_MAX = -(2**63), 2**64 - 1
INTEGERS = ("int", "byte", "short", "long", "bigint")
LISTS = ("list", "tuple")
NULLS = ("none", "null")
DECIMALS = ("decimal", "bigdecimal")

# How high a value may be: a scalar or an empty container is 1 high, a container one more than its highest child. Auto mode has
# its own limit (the one of msgpack). The other formats set none; this is the library's, and as deep as the published decode
# bounds let a reader go.
MAX_HEIGHT = 1024


class Refused(Exception):
    """The scheme cannot carry the value. `code` is the error code that says why, or None where several would be right."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code


def blake2b_256(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()


# ------------------------------------------------------------------------------------------------ reading typed values


def kind_of(value):
    if not isinstance(value, dict) or not isinstance(value.get("t"), str):
        raise Refused("not a typed value", "invalid_argument")
    return value["t"]


def integer_of(value):
    text = str(value["v"])
    if not re.fullmatch(r"-?[0-9]+", text):
        raise Refused("not an integer")
    return int(text)


def double_bits(value):
    return _bits(value["bits"] if "bits" in value else value["v"], 16)


def float_bits(value):
    return _bits(value["bits"], 8)


def _bits(text, digits):
    if not re.fullmatch(r"0x[0-9a-fA-F]{%d}" % digits, text):
        raise Refused("not the bits of a float")
    return int(text, 16)


def number_of(value):
    """The double of a typed float of either width."""
    if value["t"] == "float":
        return struct.unpack(">f", struct.pack(">I", float_bits(value)))[0]
    return struct.unpack(">d", struct.pack(">Q", double_bits(value)))[0]


def text_of(value):
    if "wtf8" in value:
        raise Refused("ill-formed text", "ill_formed_text")
    return value["v"]


def moment_of(value):
    if value["off_us"] is None:
        raise Refused("a naive datetime is no moment")
    try:
        zone = datetime.timezone(datetime.timedelta(microseconds=value["off_us"]))
        return datetime.datetime(*value["c"], tzinfo=zone)
    except ValueError as error:
        raise Refused(str(error))


def decimal_of(value):
    try:
        return decimal.Decimal(value["v"])
    except decimal.InvalidOperation:
        raise Refused("not a decimal")


def uuid_text(value):
    try:
        return str(uuid.UUID(value["v"]))
    except ValueError:
        raise Refused("not a UUID")


def path_text(value):
    flavour = {"posix": pathlib.PurePosixPath, "windows": pathlib.PureWindowsPath}[value["flavour"]]
    return flavour(value["v"]).as_posix()


# ------------------------------------------------------------------------------------------------------------ failover

# Character.isWhitespace of Java, which String.isBlank asks: Unicode spaces but for the three that do not break, and some controls.
JAVA_WHITESPACE = set("\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2028\u2029\u205f\u3000") | {
    chr(c) for c in range(0x2000, 0x200B) if c != 0x2007
}


def effective_name(name, domain):
    blank = not domain or all(c in JAVA_WHITESPACE for c in domain)
    return name if blank else domain


def failover(case, style):
    args = case.get("args") or []
    raw = FailoverText(style).raw(args)
    digest = hashlib.md5((effective_name(case["name"], case.get("domain")) + ":" + raw).encode()).digest()
    return {"raw_key": raw, "uuid": str(uuid.UUID(bytes=digest, version=3))}


class FailoverText:
    """Layer 1: the raw text of a call, in style `exact` (as the Java library prints it) or `escaped` (injective)."""

    def __init__(self, style):
        self.escaped = style == "escaped"

    def raw(self, args):
        if not args:
            return "NO-ARG"
        return ":".join(self._argument(a) for a in args)

    def _argument(self, value):
        items = self._items(value)
        if items is None:
            return self._scalar(value, inner=False)
        text = ",".join(self._element(i) for i in items)
        if self.escaped and (not items or (len(items) == 1 and items[0]["t"] in NULLS)):
            return "\\-" + text
        return text

    def _element(self, value):
        items = self._items(value)
        if items is None:
            return self._scalar(value, inner=False)
        text = ",".join(self._element(i) for i in items)
        return "\\[" + text + "\\]" if self.escaped else text

    def _items(self, value):
        """What a value that prints as a list consists of; None if it is not one."""
        kind = kind_of(value)
        if kind in LISTS or (kind == "array" and "dtype" not in value):
            return value["v"]
        if kind == "set":
            if "iteration_order" in value:
                return [{"t": "str", "v": text} for text in value["iteration_order"]]
            return value["v"]
        if kind == "bytes":
            return [{"t": "int", "v": b - 256 if b > 127 else b} for b in bytes.fromhex(value["v"])]
        return None

    def _inside(self, value):
        """Inside a map or an Optional everything prints as its toString."""
        items = self._items(value)
        if items is not None:
            return "[" + ", ".join(self._inside(i) for i in items) + "]"
        return self._scalar(value, inner=True)

    def _scalar(self, value, inner):
        kind = value["t"]
        if kind in NULLS:
            if self.escaped:
                return "\\0"
            return "null" if inner else ""
        if kind == "bool":
            return "true" if value["v"] else "false"
        if kind in INTEGERS:
            return str(integer_of(value))
        if kind in ("f64", "double"):
            return java_text.double_text(double_bits(value))
        if kind == "float":
            return java_text.float_text(float_bits(value))
        if kind in ("str", "path"):
            return self._text(text_of(value), inner)
        if kind == "char":
            if len(value["v"]) != 1:
                raise Refused("not one character")
            return self._text(value["v"], inner)
        if kind in ("enum", "object"):
            if not isinstance(value.get("to_string"), str):
                raise Refused("no text form")
            return self._text(value["to_string"], inner)
        if kind == "uuid":
            return uuid_text(value)
        if kind in DECIMALS:
            try:
                return java_text.decimal_text(value["v"])
            except (ValueError, decimal.InvalidOperation):
                raise Refused("not a BigDecimal")
        if kind == "datetime":
            moment_of(value)
            return java_text.instant_text(value["c"], value["off_us"])
        if kind == "map":
            return "{" + ", ".join(self._inside(k) + "=" + self._inside(v) for k, v in value["v"]) + "}"
        if kind == "optional":
            if value["v"] is None or value["v"]["t"] in NULLS:
                return "Optional.empty"
            return "Optional[" + self._inside(value["v"]) + "]"
        if kind == "object_identity":
            if self.escaped:
                raise Refused("an identity is not a stable text", "unsupported_type")
            return self._text("%s@%x" % (value["class"], value["hash"] & 0xFFFFFFFF), inner)
        raise Refused("no text form: " + kind)

    def _text(self, text, inner):
        if not self.escaped:
            return text
        if text == "":
            return "\\e"
        if text == "NO-ARG":
            return "\\NO-ARG"
        return re.sub(r"[\\:,={}\[\]]" if inner else r"[\\:,]", lambda m: "\\" + m[0], text)


# ------------------------------------------------------------------------------------------------- CacheKit, auto mode

SERIALIZER_CODES = {
    "v1_0": {"std": "s", "auto": "a", "orjson": "o", "arrow": "w"},
    "py_0_17": {"std": "s", "auto": "a", "orjson": "o", "arrow": "w", "local": "l"},
    "current": {"std": "s", "standard": "s", "default": "s", "auto": "a", "pythonic": "a", "orjson": "o", "arrow": "w", "local": "l"},
}
MAX_ARRAY_BYTES = 100_000
MAX_TOTAL_ARRAY_BYTES = 5_000_000
ELEMENT_BYTES = {"i32": 4, "i64": 8, "f32": 4, "f64": 8}


def serializer_code(serializer, dialect):
    if not isinstance(serializer, str):
        raise Refused("a serializer is named by text", "invalid_argument")
    code = SERIALIZER_CODES[dialect].get(serializer)
    if code is not None:
        return code
    if dialect != "current":
        return "s"
    if serializer == "":
        raise Refused("a serializer has a name", "invalid_argument")
    return "x" + hashlib.blake2b(serializer.encode(), digest_size=2).hexdigest()


def cachekit_auto(case, dialect):
    flags = ("1" if case.get("integrity", True) else "0") + serializer_code(case.get("serializer", "std"), dialect)
    packed = AutoModeArguments().pack(case["args"], case["kwargs"])
    args_hash = blake2b_256(packed)
    function = case["module"] + "." + case["qualname"]
    if dialect != "v1_0":
        function = re.sub(r"[^A-Za-z0-9_.]", "_", function)
        function = re.sub(r"\.\.+", ".", function)[:200]
    key = "ns:" + case["namespace"] + ":" if case.get("namespace") else ""
    key += "func:" + function + ":args:" + args_hash + ":" + flags
    key = re.sub(r"[ \n\r]", "_", key)
    if len(key) > 250:
        key = key[:50] + ":" + blake2b_256(key.encode())[:32]
    return {"key": key, "args_hash": args_hash, "msgpack_hex": packed.hex()}


class AutoModeArguments:
    """Normalises the arguments of one call (the array budget runs over all of them) and packs them."""

    def __init__(self):
        self.array_bytes = 0

    def pack(self, args, kwargs):
        positional = [self.normal(a) for a in args]
        named = {}
        for name, value in sorted(kwargs, key=lambda pair: pair[0]):
            if name in named:
                raise Refused("a keyword twice", "duplicate")
            named[name] = self.normal(value)
        try:
            return msgpack.packb([positional, named])
        except OverflowError as error:
            raise Refused(str(error), "out_of_range")
        except ValueError as error:
            raise Refused(str(error), "too_deep" if "recursion" in str(error) else None)
        except TypeError as error:
            raise Refused(str(error))

    def normal(self, value):
        kind = kind_of(value)
        if kind in NULLS:
            return None
        if kind == "bool":
            return value["v"]
        if kind in INTEGERS:
            return integer_of(value)
        if kind in ("f64", "double", "float"):
            return number_of(value) or 0.0
        if kind == "str":
            return text_of(value)
        if kind == "char":
            return value["v"]
        if kind == "bytes":
            return bytes.fromhex(value["v"])
        if kind in LISTS:
            return [self.normal(v) for v in value["v"]]
        if kind == "map":
            return self._map(value["v"])
        if kind == "uuid":
            return uuid_text(value)
        if kind in DECIMALS:
            return str(decimal_of(value))
        if kind == "path":
            return path_text(value)
        if kind == "datetime":
            return moment_of(value).isoformat()
        if kind == "enum":
            if value.get("base") == "float" and number_of(value["v"]) != 0.0:
                raise Refused("a float with a name is not packed, but for zero, which is replaced before")
            return self.normal(value["v"])
        if kind == "array":
            return self._array(value)
        raise Refused("no auto-mode form: " + kind, "unsupported_type")

    def _map(self, pairs):
        entries = {}
        for key, item in pairs:
            if key["t"] not in (*NULLS, *INTEGERS, "bool", "f64", "double", "float", "str", "char", "bytes"):
                raise Refused("not a map key: " + key["t"])
            # Keys are compared, not normalised: -0.0 stays itself.
            plain = number_of(key) if key["t"] in ("f64", "double", "float") else self.normal(key)
            if plain in entries:
                raise Refused("a key twice", "duplicate")
            entries[plain] = self.normal(item)
        try:
            return {k: entries[k] for k in sorted(entries)}
        except TypeError as error:
            raise Refused(str(error))

    def _array(self, value):
        if "dtype" not in value:
            raise Refused("an array of values is no auto-mode value")
        size = ELEMENT_BYTES.get(value["dtype"])
        elements = bytes.fromhex(value["le"])
        if len(elements) > MAX_ARRAY_BYTES:
            raise Refused("array too large", "too_large")
        self.array_bytes += len(elements)
        if self.array_bytes > MAX_TOTAL_ARRAY_BYTES:
            raise Refused("arrays too large together", "too_large")
        if len(value["shape"]) != 1:
            raise Refused("not one-dimensional")
        if size is None:
            raise Refused("element type " + value["dtype"])
        if value["shape"][0] * size != len(elements):
            raise Refused("shape and bytes disagree")
        return ["__array_v1__", value["shape"], value["dtype"], blake2b_256(elements)]


# -------------------------------------------------------------------------------------------------- CacheKit, interop/v1


def interop(case):
    for role in ("namespace", "operation"):
        segment = case[role]
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", segment) or ".." in segment:
            raise Refused("bad " + role, "invalid_argument")
    if case["namespace"] in ("ns", "nsapi"):
        raise Refused("reserved namespace", "invalid_argument")
    encode = InteropEncoder(is_value=False).encode
    canonical = _header(len(case["args"]), 0x90, 0xDC) + b"".join(encode(a) for a in case["args"])
    args_hash = blake2b_256(canonical)
    key = case["namespace"] + ":" + case["operation"] + ":" + args_hash
    return {"key": key, "args_hash": args_hash, "canonical_hex": canonical.hex()}


def interop_value(case):
    return {"hex": InteropEncoder(is_value=True).encode(case["value"]).hex()}


def _header(count, small, wide):
    if count < 16:
        return bytes([small | count])
    return struct.pack(">BH", wide, count) if count < 65536 else struct.pack(">BI", wide + 1, count)


class InteropEncoder:
    """Canonical MessagePack of one value: the argument profile (a closed model), or the value profile (plain and readable)."""

    def __init__(self, is_value):
        self.is_value = is_value

    def encode(self, value):
        kind = kind_of(value)
        if kind in NULLS:
            return b"\xc0"
        if kind == "bool":
            return b"\xc3" if value["v"] else b"\xc2"
        if kind in INTEGERS or (kind == "intsub" and not self.is_value):
            number = integer_of(value)
            if not INT_MIN <= number <= INT_MAX:
                raise Refused("integer out of range", "out_of_range")
            return msgpack.packb(number)
        if kind in ("f64", "double", "float"):
            return self._number(number_of(value))
        if kind == "str" or (kind in ("char", "strsub") and not self.is_value):
            return msgpack.packb(text_of(value))
        if kind == "bytes" or (kind == "bytearray" and not self.is_value):
            return msgpack.packb(bytes.fromhex(value["v"]))
        if kind in LISTS:
            return _header(len(value["v"]), 0x90, 0xDC) + b"".join(self.encode(v) for v in value["v"])
        if kind == "map":
            return self._map(value["v"])
        if kind == "datetime":
            return self._moment(moment_of(value))
        return self._value_only(kind, value) if self.is_value else self._argument_only(kind, value)

    def _number(self, number):
        if number != number or number in (float("inf"), float("-inf")):
            raise Refused("not finite", "not_finite")
        if not self.is_value and number == int(number) and -(2.0**63) <= number < 2.0**64:
            return msgpack.packb(int(number))
        return msgpack.packb(number)

    def _map(self, pairs):
        entries = {}
        for key, item in pairs:
            if key["t"] != "str":
                raise Refused("map keys are text")
            encoded = text_of(key).encode()
            if encoded in entries:
                raise Refused("a key twice", "duplicate")
            entries[encoded] = self.encode(item)
        body = b"".join(msgpack.packb(key.decode()) + entries[key] for key in sorted(entries))
        return _header(len(entries), 0x80, 0xDE) + body

    def _moment(self, moment):
        if self.is_value:
            return self._sentinel("__datetime__", moment.isoformat())
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        microseconds = (moment - epoch) // datetime.timedelta(microseconds=1)
        return self._number(float(microseconds) / 1e6)

    def _sentinel(self, name, text):
        return msgpack.packb({name: True, "value": text})

    def _value_only(self, kind, value):
        try:
            if kind == "date":
                return self._sentinel("__date__", datetime.date(*value["c"]).isoformat())
            if kind == "time":
                return self._sentinel("__time__", datetime.time(*value["c"]).isoformat())
        except ValueError as error:
            raise Refused(str(error))
        raise Refused("no interop value: " + kind, "unsupported_type")

    def _argument_only(self, kind, value):
        if kind == "set":
            elements = sorted({self.encode(v) for v in value["v"]})
            return _header(len(elements), 0x90, 0xDC) + b"".join(elements)
        if kind == "uuid":
            return msgpack.packb(uuid_text(value))
        if kind in DECIMALS:
            return msgpack.packb(str(decimal_of(value)))
        if kind == "path":
            return msgpack.packb(path_text(value))
        if kind == "enum":
            return self.encode(value["v"])
        raise Refused("not in the interop data model: " + kind, "unsupported_type")


# --------------------------------------------------------------------------------------------------------- all schemes

# Every way to run the batch command: scheme, the option that varies it, its values.
VARIANTS = {
    "failover": ("--style", ("exact", "escaped")),
    "cachekit-auto": ("--dialect", ("current", "py_0_17", "v1_0")),
    "interop": (None, ("",)),
    "interop-value": (None, ("",)),
}


def _inner_values(value):
    inner = value.get("v") if isinstance(value, dict) else None
    if isinstance(inner, dict):
        return [inner]
    if not isinstance(inner, list):
        return []
    return [part for pair in inner for part in pair] if value["t"] == "map" else inner


def _height(values):
    """How many values lie inside each other; walks level by level, since this is about depth."""
    height = 0
    while values:
        height += 1
        values = [inner for outer in values for inner in _inner_values(outer)]
    return height


def answer(scheme, variant, case):
    """What the batch command must print for a case, without its id; raises Refused."""
    if scheme != "cachekit-auto" and _height(case.get("args") or [case.get("value")]) > MAX_HEIGHT:
        raise Refused("nested too deep", "too_deep")
    if scheme == "failover":
        return failover(case, variant)
    if scheme == "cachekit-auto":
        return cachekit_auto(case, variant)
    if scheme == "interop":
        return interop(case)
    return interop_value(case)
