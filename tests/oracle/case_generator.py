"""Random cases for the differential test, crowded around the places where encoders go wrong.

Everything derives from one seeded generator, so a seed replays a run. A valid case may still be refused by a scheme (the
oracle decides); `broken_case` plants exactly one fault whose error code and path are known.
"""

import json
import struct

INTERESTING_INTS = sorted(
    {sign * (2**power + step) for power in (0, 4, 5, 7, 8, 15, 16, 31, 32, 53, 62, 63, 64) for step in (-1, 0, 1) for sign in (1, -1)}
    | {0, 10, 42, 100, 10**7, 10**18, 10**19}
)
INTERESTING_DOUBLES = [
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000,
    0x3FF0000000000000, 0xBFF0000000000000, 0x3FF8000000000000, 0x3FB999999999999A, 0x3FD3333333333334, 0x416312D000000000,
    0x416312CFFFFFFFFF, 0x3F50624DD2F1A9FC, 0x3F50624DD2F1A9FB, 0x44B52D02C7E14AF6, 0x4480F0CF064DD592, 0x7FEFFFFFFFFFFFFF,
    0x4340000000000000, 0x433FFFFFFFFFFFFF, 0x43E0000000000000, 0xC3E0000000000000, 0xC3E0000000000001, 0x43EFFFFFFFFFFFFF,
    0x43F0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8DEAD00000001, 0x7FF0000000000001,
]  # fmt: skip
INTERESTING_FLOATS = [
    0x00000000, 0x80000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0x3DCCCCCD, 0x4B189680, 0x4B18967F, 0x3A83126F,
    0x3A83126E, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x4C000000, 0x5F000000, 0x0DA24260,
]  # fmt: skip
LENGTHS = (31, 32, 255, 256)
LONG_LENGTHS = (65535, 65536)
# Separators and escapes of every scheme, what Java and JSON treat specially, one to four bytes of UTF-8, both planes' ends.
SPECIAL_CHARACTERS = list(":,\\={}[]-e0 \t\n\r\"'/.NO") + list("\0\x1b\x7f\u0085\u00a0é\u0301ß\u2028\u2029\u3000€中\ud7ff\ue000\uff61\ufffd\uffff")
SPECIAL_CHARACTERS += ["\U00010000", "😀", "👩\u200d👩\u200d👧", "\U0010ffff"]
SPECIAL_TEXTS = ["", "NO-ARG", "\\", "\\e", "\\0", "\\-", "\\[", "\\]", ":", ",", "a:b", "a,b", "null", "true", "1", "1.0", "no-arg", "Optional.empty"]
WORDS = ["FR", "alice", "active", "EU", "x", "user_id", "Société Générale", "2024-01-01", "country"]
OFFSETS_US = [0, 0, 0, 3600, -3600, 19800, -19800, 50400, -43200, 1172, -1, 1, 86399, -86399, 20700]
DECIMAL_FORMS = ["%d", "%d.", "%d.0", "%d.00", ".%d", "-%d", "+%d", "%dE5", "%de-7", "%dE+20", "%d.5E-10", "0.000000%d", "%dE0", "0E-%d", "-0.%d", "00%d"]
POSIX_PARTS = ["", ".", "..", "a", "b c", "é", "~", "...", "a.b", "C:", "back\\slash", " ", "-", "😀"]
WINDOWS_HEADS = ["", "", "C:", "C:\\", "c:/", "\\", "/", "\\\\srv\\share", "//srv/share/", "D:\\dir\\"]
WINDOWS_PARTS = [p for p in POSIX_PARTS if ":" not in p]
PATH_PIECES = ["/", "/", "\\", "\\", ".", "a", "C:", "?", "srv", " "]
DECIMAL_PIECES = ["0", "1", "7", "00", ".", "e", "E", "+", "-", "12"]
KEYWORD_NAMES = ["a", "b", "user_id", "été", "中", "zeta", "A", "_", "k1", "k2"]


class CaseGenerator:
    def __init__(self, scheme, rng):
        self.scheme = scheme
        self.rng = rng
        scalars = {
            "none": 3, "bool": 3, "int": 8, "f64": 6, "str": 12, "bytes": 3, "datetime": 2,
        }  # fmt: skip
        if scheme != "interop-value":
            scalars |= {"uuid": 1, "decimal": 2, "path": 2, "float": 2, "char": 1}
        if scheme == "failover":
            scalars |= {"bigint": 1, "object": 1, "object_identity": 0.3, "optional": 1, "enum_text": 1}
        elif scheme == "interop-value":
            scalars |= {"date": 1, "time": 1, "float": 1}
        else:
            scalars |= {"enum": 1}
        if scheme == "cachekit-auto":
            scalars |= {"array": 1}
        containers = {"list": 4, "tuple": 1, "map": 3}
        if scheme in ("failover", "interop"):
            containers |= {"set": 1}
        if scheme == "failover":
            containers |= {"java_array": 1, "numbers": 0.5}
        self._scalar_kinds, self._scalar_weights = list(scalars), list(scalars.values())
        both = scalars | containers
        self._all_kinds, self._all_weights = list(both), list(both.values())

    # ------------------------------------------------------------------------------------------------------------ cases

    def case(self, number):
        case = self._frame(number)
        if self.scheme == "interop-value":
            case["value"] = self.value(3)
        else:
            case["args"] = [self.value(3) for _ in range(self.rng.choice((0, 1, 1, 1, 2, 2, 3, 5)))]
            if self.scheme == "cachekit-auto":
                names = self.rng.sample(KEYWORD_NAMES, self.rng.choice((0, 0, 1, 3)))
                case["kwargs"] = [[name, self.value(2)] for name in names]
            elif self.scheme == "failover" and not case["args"] and self.rng.random() < 0.5:
                case["args"] = None
        return case

    def broken_case(self, number):
        """A case with one fault; returns it with the error code and the path that must be reported (None: any)."""
        leaf, code, below = self._fault()
        path = "value" if self.scheme == "interop-value" else "args[0]"
        case = self._frame(number)
        steps = self.rng.choice((0, 0, 1, 2, 3))
        before, around = [], leaf
        for _ in range(steps):
            if self.rng.random() < 0.5:
                before = [{"t": "int", "v": str(i)} for i in range(self.rng.randrange(4))]
                around = {"t": "list", "v": before + [around, {"t": "none"}]}
                below = "[%d]" % len(before) + below if below is not None else None
            else:
                name = self.rng.choice(("a", "b", "key", "z"))
                around = {"t": "map", "v": [[{"t": "str", "v": "c"}, {"t": "int", "v": "1"}], [{"t": "str", "v": name}, around]]}
                below = '.items["%s"]' % name + below if below is not None else None
        if self.scheme == "interop-value":
            case["value"] = around
        else:
            lead = [{"t": "str", "v": "ordinary"} for _ in range(self.rng.randrange(3))]
            path = "args[%d]" % len(lead)
            case["args"] = lead + [around]
            if self.scheme == "cachekit-auto":
                case["kwargs"] = []
        return case, code, None if below is None else path + below

    def line(self, case):
        """As one line of JSON, sometimes with raw UTF-8, sometimes with escapes, sometimes with spaces."""
        separators = (", ", ": ") if self.rng.random() < 0.2 else (",", ":")
        return json.dumps(case, ensure_ascii=self.rng.random() < 0.5, separators=separators)

    def _frame(self, number):
        rng = self.rng
        case = {"id": "%s-%d" % (self.scheme, number)}
        if self.scheme == "failover":
            case["name"] = rng.choice(("country-by-code", "n", "été", "a:b", "p\U0001f600"))
            case["domain"] = rng.choice(("", "", None, "country", " d ", " \t", "\u3000", "\u00a0", "\u2007", "\u2003\x1f", "\x85", "a:b"))
        elif self.scheme == "cachekit-auto":
            case["namespace"] = rng.choice((None, "", "test", "a:b", "my ns", "a\r\nb", "été", "😀" * rng.randrange(60, 200), "n" * rng.randrange(120, 180)))
            case["module"] = rng.choice(("app.mod", "__main__", "", "a..b", "my-pkg", "pkg.<x>", "m" * rng.randrange(1, 220), "módulo😀"))
            case["qualname"] = rng.choice(("fn", "Cls.method", "outer.<locals>.inner", "<lambda>", "..c", "f g\n", "q" * rng.randrange(1, 220)))
            case["integrity"] = rng.random() < 0.7
            case["serializer"] = rng.choice(
                ("std", "std", "std", "auto", "orjson", "arrow", "local", "default", "standard", "pythonic", "cbor", "toml", "STD", "<custom>:Café", "")
            )
        elif self.scheme == "interop":
            case["namespace"] = rng.choice(("users", "t", "a-", "0", "nsx", "app.", "a" * 64))
            case["operation"] = rng.choice(("get_user", "op", "ns", "nsapi", "9", "users.fetch.by_id", "b" * 64))
        return case

    # ----------------------------------------------------------------------------------------------------------- values

    def value(self, depth):
        if depth <= 0:
            kind = self.rng.choices(self._scalar_kinds, self._scalar_weights)[0]
        else:
            kind = self.rng.choices(self._all_kinds, self._all_weights)[0]
        return getattr(self, "_" + kind)(depth)

    def _none(self, _):
        return {"t": self.rng.choice(("none", "null"))}

    def _bool(self, _):
        return {"t": "bool", "v": self.rng.random() < 0.5}

    def _int(self, _):
        number = self.rng.choice(INTERESTING_INTS)
        if self.rng.random() < 0.4:
            number = self.rng.getrandbits(self.rng.randrange(1, 65)) * self.rng.choice((1, -1))
        return {"t": self.rng.choice(("int", "int", "int", "long", "short", "byte")), "v": str(number)}

    def _bigint(self, _):
        return {"t": "bigint", "v": str(self.rng.getrandbits(self.rng.randrange(60, 300)) * self.rng.choice((1, -1)))}

    def _double_bits(self):
        roll = self.rng.random()
        if roll < 0.3:
            return self.rng.choice(INTERESTING_DOUBLES)
        if roll < 0.5:
            return self.rng.getrandbits(64)
        if roll < 0.7:
            number = float(self.rng.getrandbits(self.rng.randrange(1, 70))) * self.rng.choice((1.0, -1.0))
        else:
            number = float("%d.%de%d" % (self.rng.randrange(10), self.rng.randrange(1000), self.rng.randrange(-12, 24)))
        return struct.unpack(">Q", struct.pack(">d", number))[0]

    def _f64(self, _):
        bits = self._double_bits()
        if self.scheme.startswith("interop") and (bits >> 52) & 0x7FF == 0x7FF:
            bits = 0x3FF8000000000000
        form = self.rng.random()
        return {"t": "f64", "v": "0x%016x" % bits} if form < 0.7 else {"t": "double", "bits": "0x%016x" % bits}

    def _float(self, _):
        roll = self.rng.random()
        if roll < 0.3:
            bits = self.rng.choice(INTERESTING_FLOATS)
        elif roll < 0.6:
            bits = self.rng.getrandbits(32)
        else:
            bits = struct.unpack(">I", struct.pack(">f", self.rng.randrange(10**7) / 10.0 ** self.rng.randrange(12)))[0]
        if self.scheme != "failover" and (bits >> 23) & 0xFF == 0xFF:
            bits = 0x3FC00000  # NaN changes its bits when it is widened, and interop refuses all of these
        return {"t": "float", "bits": "0x%08x" % bits}

    def _text(self):
        rng = self.rng
        roll = rng.random()
        if roll < 0.25:
            return rng.choice(WORDS)
        if roll < 0.45:
            return rng.choice(SPECIAL_TEXTS)
        if roll < 0.95:
            return "".join(rng.choices(SPECIAL_CHARACTERS, k=rng.randrange(1, 9)))
        if roll < 0.998:
            return rng.choice(("a", "é", "😀")) * rng.choice(LENGTHS)
        return "a" * rng.choice(LONG_LENGTHS)

    def _str(self, _):
        return {"t": "str", "v": self._text()}

    def _char(self, _):
        return {"t": "char", "v": self.rng.choice([c for c in SPECIAL_CHARACTERS if len(c) == 1])}

    def _bytes(self, _):
        roll = self.rng.random()
        size = self.rng.randrange(6) if roll < 0.9 else self.rng.choice(LENGTHS) if roll < 0.998 else self.rng.choice(LONG_LENGTHS)
        return {"t": "bytes", "v": self.rng.randbytes(size).hex()}

    def _uuid(self, _):
        text = self.rng.randbytes(16).hex()
        text = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        return {"t": "uuid", "v": text.upper() if self.rng.random() < 0.3 else text}

    def _decimal(self, _):
        rng = self.rng
        if rng.random() < 0.1:
            # Mostly not numbers at all: the oracle knows.
            return {"t": "decimal", "v": "".join(rng.choices(DECIMAL_PIECES, k=rng.randrange(1, 6)))}
        digits = rng.choice((0, 1, 7, 10, 100, 123456789, 10**30 + 1, rng.getrandbits(40)))
        form = rng.choice(DECIMAL_FORMS)
        text = form % (digits if digits <= 100 or "E-%d" not in form else 7)
        if self.scheme != "failover" and rng.random() < 0.2:
            text = rng.choice(("NaN", "nan", "-NaN", "sNaN", "NaN123", "-sNaN7", "Infinity", "-inf", "+Infinity", "-0", "-0.00", "1_000.5", " 7 "))
        return {"t": rng.choice(("decimal", "bigdecimal")), "v": text}

    def _path(self, _):
        rng = self.rng
        if rng.random() < 0.4:
            return {"t": "path", "flavour": rng.choice(("posix", "windows")), "v": "".join(rng.choices(PATH_PIECES, k=rng.randrange(8)))}
        if rng.random() < 0.5:
            lead = rng.choice(("", "", "/", "//", "///"))
            return {"t": "path", "flavour": "posix", "v": lead + "/".join(rng.choices(POSIX_PARTS, k=rng.randrange(5)))}
        text = rng.choice(WINDOWS_HEADS)
        for part in rng.choices(WINDOWS_PARTS, k=rng.randrange(4)):
            text += part + rng.choice(("\\", "/", "\\\\", ""))
        return {"t": "path", "flavour": "windows", "v": text}

    def _datetime(self, _):
        rng = self.rng
        year = rng.choice((1, 1, 1890, 1900, 1969, 1970, 2000, 2024, 2024, 2024, 9999, rng.randrange(1, 10000)))
        month = rng.randrange(1, 13)
        day = rng.choice((1, 28, 29 if month == 2 and year == 2024 else 28, rng.randrange(1, 29)))
        micros = rng.choice((0, 0, 1, 1000, 123000, 450000, 123456, 999999, rng.randrange(10**6)))
        clock = rng.choice(((0, 0, 0), (23, 59, 59), (12, 30, 45), (rng.randrange(24), rng.randrange(60), rng.randrange(60))))
        offset = rng.choice(OFFSETS_US) * 10**6 + rng.choice((0, 0, 0, 0, 1, -1, 123456))
        return {"t": "datetime", "c": [year, month, day, *clock, micros], "off_us": offset}

    def _date(self, _):
        return {"t": "date", "c": self._datetime(0)["c"][:3]}

    def _time(self, _):
        return {"t": "time", "c": self._datetime(0)["c"][3 : self.rng.choice((5, 6, 7))]}

    def _enum(self, depth):
        value, base = self.rng.choice((("_int", "int"), ("_int", "plain"), ("_str", "str"), ("_str", "plain"), ("_uuid", "plain"), ("_list", "plain")))
        return {"t": "enum", "base": base, "v": getattr(self, value)(min(depth, 1))}

    def _enum_text(self, _):
        return {"t": "enum", "v": "MEMBER", "to_string": self._text()}

    def _object(self, _):
        return {"t": "object", "class": "a.B", "to_string": self._text()}

    def _object_identity(self, _):
        return {"t": "object_identity", "class": "a.B$" + self.rng.choice("Cd"), "hash": self.rng.choice((51966, 0, -1, -(2**31), 2**31 - 1))}

    def _optional(self, depth):
        return {"t": "optional", "v": None if self.rng.random() < 0.3 else self._inside(depth)}

    def _array(self, _):
        kind = self.rng.choice(("i32", "i64", "f32", "f64"))
        size = 4 if kind.endswith("32") else 8
        count = self.rng.choice((0, 1, 2, 3, 127, 128, 300)) if self.rng.random() < 0.98 else 100_000 // size
        return {
            "t": "array", "dtype": kind, "shape": [count], "order": self.rng.choice("<>"), "step": self.rng.choice((1, 1, 3)),
            "le": self.rng.randbytes(count * size).hex(),
        }  # fmt: skip

    def _count(self):
        roll = self.rng.random()
        return self.rng.randrange(4) if roll < 0.97 else self.rng.choice((15, 16, 17)) if roll < 0.998 else 256

    def _list(self, depth):
        count = self._count()
        return {"t": "list", "v": [self.value(depth - 1 if count < 10 else 0) for _ in range(count)]}

    def _tuple(self, depth):
        return {"t": "tuple", "v": self._list(depth)["v"]}

    def _numbers(self, _):
        """Many floats at once: how they print has the most corners of all."""
        return {"t": "list", "v": [self._float(0) if self.rng.random() < 0.5 else self._f64(0) for _ in range(40)]}

    def _java_array(self, depth):
        kind = self.rng.choice(("int", "char", "bool", "object"))
        if kind == "object":
            return {"t": "array", "elem": kind, "v": self._list(depth)["v"]}
        return {"t": "array", "elem": kind, "v": [getattr(self, "_" + kind)(0) for _ in range(self._count())]}

    def _set(self, depth):
        if self.scheme == "failover" and self.rng.random() < 0.5:
            texts = [self._text() for _ in range(self.rng.randrange(4))]
            return {"t": "set", "impl": "HashSet", "v": [{"t": "str", "v": t} for t in reversed(texts)], "iteration_order": texts}
        return {"t": "set", "v": self._list(depth)["v"]}

    def _map(self, depth):
        rng = self.rng
        count = self._count()
        kind = "_str"
        if self.scheme == "cachekit-auto" and rng.random() < 0.4:
            kind = rng.choice(("_int", "_f64", "_bool", "_bytes", "_none", "_int_or_f64"))
        elif self.scheme == "failover" and rng.random() < 0.3:
            kind = rng.choice(("_int", "_bool", "_f64", "_uuid", "_enum_text", "_none"))
        pairs, seen = [], set()
        for _ in range(count):
            key = getattr(self, rng.choice(("_int", "_f64")) if kind == "_int_or_f64" else kind)(0)
            same = self._sameness(key)
            if same in seen or same == "nan":
                continue
            seen.add(same)
            item = self._inside(depth - 1) if self.scheme == "failover" else self.value(depth - 1 if count < 10 else 0)
            pairs.append([key, item])
        rng.shuffle(pairs)
        return {"t": "map", "v": pairs}

    def _inside(self, depth):
        """Inside a Java map or Optional: bytes and arrays have no text of their own there."""
        while True:
            value = self.value(min(depth, 1))
            if '"bytes"' not in json.dumps(value) and '"array"' not in json.dumps(value):
                return value

    def _sameness(self, key):
        """Two keys that no map can hold together are equal here (1 and 1.0 are one number)."""
        if key["t"] in ("f64", "double"):
            bits = int(key.get("bits", key["v"] if "v" in key else "0"), 16)
            number = struct.unpack(">d", struct.pack(">Q", bits))[0]
            return "nan" if number != number else number
        if key["t"] in ("int", "long", "short", "byte"):
            return int(key["v"])
        if key["t"] in ("none", "null"):
            return "null"
        return key["t"] + str(key.get("to_string", key.get("v"))).lower() if key["t"] == "uuid" else (key["t"], key.get("to_string", key.get("v")))

    # ----------------------------------------------------------------------------------------------------------- faults

    def _fault(self):
        """(value, error code or None, path below it or None): something that this scheme must refuse."""
        faults = [
            ({"t": "str", "wtf8": self.rng.choice(("61edb080", "eda080", "edbfbf", "ff", "c080", "f4908080", "e28"+"2"))}, "ill_formed_text", ""),
            ({"t": "no_such_type"}, None, ""),
            ({"t": "int", "v": self.rng.choice(("", "-", "1.5", "abc", "0x10", "1 "))}, None, ""),
            ({"t": "f64", "v": self.rng.choice(("", "1.5", "0x", "0x123456789abcdef01"))}, None, ""),
            ({"t": "bytes", "v": self.rng.choice(("0", "zz", "0x00"))}, None, ""),
            ({"t": "datetime", "c": [2024, 1, 1, 0, 0, 0, 0], "off_us": None}, None, ""),
            ({"t": "datetime", "c": self.rng.choice(([2023, 2, 29, 0, 0, 0, 0], [2024, 13, 1, 0, 0, 0, 0], [2024, 1, 1, 24, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0])), "off_us": 0}, None, ""),
            ({"t": "datetime", "c": [2024, 1, 1, 0, 0, 0, 0], "off_us": self.rng.choice((86400 * 10**6, -86400 * 10**6))}, None, ""),
            ({"t": self.rng.choice(("timedelta", "complex", "npscalar", "range")), "v": 1}, None, ""),
        ]  # fmt: skip
        if self.scheme != "interop-value":
            faults += [
                ({"t": "uuid", "v": self.rng.choice(("", "550e8400", "550e8400-e29b-41d4-a716-44665544000g"))}, None, ""),
                ({"t": "decimal", "v": self.rng.choice(("", "abc", "1.2.3", "1E", "--1"))}, None, ""),
                ({"t": "date", "c": [2024, 1, 1]}, None, ""),
                ({"t": "time", "c": [1, 2, 3]}, None, ""),
            ]
        if self.scheme == "failover":
            faults += [
                ({"t": "object"}, None, ""),
                ({"t": "char", "v": "ab"}, None, ""),
                ({"t": "decimal", "v": self.rng.choice(("NaN", "Infinity"))}, None, ""),
            ]
            return self.rng.choice(faults)
        faults += [
            ({"t": "int", "v": self.rng.choice((str(2**64), str(-(2**63) - 1), "1" + "0" * 40))}, "out_of_range", ""),
            ({"t": "map", "v": [[{"t": "str", "v": "k"}, {"t": "int", "v": "1"}], [{"t": "str", "v": "k"}, {"t": "int", "v": "2"}]]}, "duplicate", None),
            ({"t": "object", "class": "a.B", "to_string": "x"}, "unsupported_type", ""),
            ({"t": "object_identity", "class": "a.B", "hash": 1}, "unsupported_type", ""),
            ({"t": "optional", "v": None}, None, ""),
        ]
        if self.scheme == "cachekit-auto":
            faults += [
                ({"t": "set", "v": [{"t": "int", "v": "1"}]}, "unsupported_type", ""),
                ({"t": "map", "v": [[{"t": "str", "v": "a"}, {"t": "int", "v": "1"}], [{"t": "int", "v": "1"}, {"t": "int", "v": "2"}]]}, None, None),
                ({"t": "map", "v": [[{"t": "uuid", "v": "550e8400-e29b-41d4-a716-446655440000"}, {"t": "int", "v": "1"}]]}, None, None),
                ({"t": "array", "dtype": "f64", "shape": [12501], "order": "<", "step": 1, "le": "00" * 100008}, "too_large", ""),
                ({"t": "array", "dtype": self.rng.choice(("u8", "i8", "u32", "c64", "bool")), "shape": [4], "order": "<", "step": 1, "le": "00" * 4}, None, ""),
                ({"t": "array", "dtype": "i32", "shape": self.rng.choice(([2, 2], [], [3])), "order": "<", "step": 1, "le": "00" * 16}, None, ""),
                ({"t": "enum", "base": "float", "v": {"t": "f64", "v": "0x3ff8000000000000"}}, None, ""),
                ({"t": self.rng.choice(("bytearray", "strsub")), "v": "00"}, None, ""),
            ]  # fmt: skip
        else:
            faults += [
                ({"t": "f64", "v": self.rng.choice(("0x7ff8000000000000", "0x7ff0000000000000", "0xfff0000000000000"))}, "not_finite", ""),
                ({"t": "float", "bits": "0x7fc00000"}, "not_finite", ""),
                ({"t": "map", "v": [[{"t": "int", "v": "1"}, {"t": "int", "v": "1"}]]}, None, None),
                ({"t": "array", "dtype": "i32", "shape": [1], "order": "<", "step": 1, "le": "01000000"}, None, ""),
            ]
        if self.scheme == "interop-value":
            faults += [
                ({"t": "set", "v": []}, "unsupported_type", ""),
                ({"t": "uuid", "v": "550e8400-e29b-41d4-a716-446655440000"}, "unsupported_type", ""),
                ({"t": "decimal", "v": "1"}, "unsupported_type", ""),
                ({"t": "path", "flavour": "posix", "v": "/a"}, "unsupported_type", ""),
                ({"t": "date", "c": [2023, 2, 29]}, None, ""),
                ({"t": "time", "c": [24, 0]}, None, ""),
            ]
        return self.rng.choice(faults)
