#!/usr/bin/python3
"""Writes the project's own vectors, tests/vectors/keys/*.jsonl, with what the oracle says about each case.

They were written once and are committed: a change of the oracle or of a format shows as a change of these files.
Each line: {"in": the batch case (with compact test data: rep, nest, mapgen), "out": {variant: answer or {"error": code}}}.
The code is null where several would be right. MessagePack of more than 512 bytes is left out; its hash is there.
"""

import json
import pathlib
import struct
import sys

import oracle
from published_vectors import expand

NULL = {"t": "none"}
INTS = sorted({s * (2**p + d) for p in (0, 5, 7, 8, 15, 16, 31, 32, 63) for d in (-1, 0) for s in (1, -1)} | {0, 42, 2**64 - 1})
DOUBLES = [0.0, -0.0, 1.0, 2.0, -1.5, 0.1, 0.1 + 0.2, 1e-3, 9.99e-4, 1e7, 9999999.0, 12345678.9, 1e23, 2e23, 5e-324, 1.7976931348623157e308,
           2.2250738585072014e-308, 2.0**53, 2.0**63, 2.0**64, -(2.0**63), 18446744073709549568.0, 3.14]  # fmt: skip
FLOATS = ["0x3dcccccd", "0x7f7fffff", "0x00000001", "0x4b189680", "0x3eaaaaab", "0x3a83126f", "0x80000000", "0x4c000000"]
TEXTS = ["", "FR", "NO-ARG", "a:b", "a,b", "back\\slash", "\\e", "\\0", "a\n\t\"b", "a\0b", "Société Générale", "法国", "😀", "\ufeffbom", "é", "e\u0301", "{a=1}", "[x]"]
BYTES = ["", "00", "7f80ff", "616263"]
DECIMALS = ["0", "-0", "1.0", "1.00", "-1.10", "1e2", "1E+3", "0.0000001", "0.000001", "0E-10", "123456789012345678901234567890.5", "+7", ".5", "5."]
PATHS = [("posix", p) for p in ("a/b", "/a//b/./c/", "//a/b", "///a", "", ".", "..", "/", "./x", "back\\slash", "a/../b")]
PATHS += [("windows", p) for p in ("C:\\a\\b", "C:a", "C:/", "\\\\srv\\share\\x", "a/b\\c", "", "\\a", "D:\\dir\\.\\sub\\", "a\\..\\b")]
MOMENTS = [([2024, 1, 1, 0, 0, 0, 0], 0), ([2024, 1, 1, 0, 0, 0, 1], 0), ([2024, 1, 1, 18, 0, 45, 123456], 19_800_000_000),
           ([2024, 1, 1, 1, 2, 3, 450000], -19_800_000_000), ([1890, 1, 1, 0, 0, 0, 0], 1_172_000_000), ([2024, 1, 1, 0, 0, 0, 0], -1),
           ([1970, 1, 1, 0, 0, 0, 0], 0), ([1969, 12, 31, 23, 59, 59, 999999], 0), ([9999, 12, 31, 23, 59, 59, 999999], 0),
           ([1, 1, 1, 0, 0, 0, 0], 0), ([1, 1, 1, 0, 0, 0, 0], 3_600_000_000), ([9999, 12, 31, 23, 0, 0, 0], -7_200_000_000),
           ([2024, 2, 29, 12, 30, 15, 120000], 86_399_999_999)]  # fmt: skip
UUID = "550E8400-E29B-41D4-A716-446655440000"


def i(number):
    return {"t": "int", "v": str(number)}


def s(text):
    return {"t": "str", "v": text}


def f(number):
    return {"t": "f64", "v": "0x" + struct.pack(">d", number).hex()}


def items(*values):
    return {"t": "list", "v": list(values)}


def entries(*pairs):
    return {"t": "map", "v": [[s(k) if isinstance(k, str) else k, v] for k, v in pairs]}


def moment(components, offset):
    return {"t": "datetime", "c": components, "off_us": offset}


def paths():
    return [{"t": "path", "flavour": flavour, "v": text} for flavour, text in PATHS]


def common():
    """Scalars and containers that every scheme has (named, value)."""
    yield from (("int/%d" % n, i(n)) for n in INTS)
    yield from (("f64/%r" % n, f(n)) for n in DOUBLES)
    yield from (("str/%d" % n, s(t)) for n, t in enumerate(TEXTS))
    yield from (("str/%s_%d" % (c, n), {"t": "str", "rep": [c, n]}) for c, n in (("a", 31), ("a", 32), ("a", 255), ("a", 256), ("é", 128), ("a", 65535), ("a", 65536)))
    yield from (("bytes/" + (b or "none"), {"t": "bytes", "v": b}) for b in BYTES)
    yield from (("datetime/%d" % n, moment(*m)) for n, m in enumerate(MOMENTS))
    yield "null", NULL
    yield "bool/true", {"t": "bool", "v": True}
    yield "bool/false", {"t": "bool", "v": False}
    yield "list/empty", items()
    yield "list/null", items(NULL)
    yield "list/nested", items(items(i(1), i(2)), items(i(3)), items())
    yield "list/16", {"t": "list", "rep": [NULL, 16]}
    yield "list/65536", {"t": "list", "rep": [NULL, 65536]}
    yield "tuple", {"t": "tuple", "v": [i(1), s("a")]}
    yield "map/empty", entries()
    yield "map/order", entries(("b", i(1)), ("a", i(2)), ("C", i(3)), ("\uff61", i(4)), ("\U00010000", i(5)), ("", i(6)))
    yield "map/nested", entries(("z", entries(("y", items(i(1), i(2))), ("x", NULL))), ("a", s("")))
    yield "map/16", {"t": "mapgen", "fmt": "k%05d", "n": 16, "val": i(7)}
    yield "nest/list_32", {"t": "nest", "kind": "list", "depth": 32, "leaf": i(1)}
    yield "nest/list_509", {"t": "nest", "kind": "list", "depth": 509, "leaf": i(1)}
    yield "reject/ill_formed", {"t": "str", "wtf8": "61edb080"}
    yield "reject/ill_formed_inside", items(i(1), entries(("k", {"t": "str", "wtf8": "ff"})))
    yield "reject/naive", {"t": "datetime", "c": [2024, 1, 1, 0, 0, 0, 0], "off_us": None}
    yield "reject/type", {"t": "timedelta", "us": 1}
    yield "reject/nest_2000", {"t": "nest", "kind": "list", "depth": 2000, "leaf": i(1)}


def arguments_of_both_cachekit_schemes():
    yield from (("decimal/" + d, {"t": "decimal", "v": d}) for d in [*DECIMALS, "NaN", "-sNaN", "-Infinity", "1_000", " 7 ", "1E+1000"])
    yield from (("path/%d" % n, p) for n, p in enumerate(paths()))
    yield "uuid", {"t": "uuid", "v": UUID}
    yield "enum/int", {"t": "enum", "base": "int", "v": i(7)}
    yield "enum/nested", {"t": "enum", "base": "plain", "v": {"t": "enum", "base": "plain", "v": s("x")}}
    yield "float", {"t": "float", "bits": "0x3dcccccd"}
    yield "reject/int_above", i(2**64)
    yield "reject/int_below", items(i(-(2**63) - 1))
    yield "reject/duplicate_key", entries(("a", i(1)), ("a", i(2)))
    yield "reject/object", {"t": "object", "class": "a.B", "to_string": "x"}
    yield "reject/date", {"t": "date", "c": [2024, 1, 1]}


def heights():
    """The highest value that every scheme but auto mode takes, and one more."""
    for kind in ("list", "map"):
        yield "height/%s_1024" % kind, {"t": "nest", "kind": kind, "depth": 1023, "leaf": i(1)}
        yield "reject/height/%s_1025" % kind, {"t": "nest", "kind": kind, "depth": 1024, "leaf": i(1)}
    yield "height/empty_innermost", {"t": "nest", "kind": "list", "depth": 1023, "leaf": items()}


def failover_cases():
    def call(case_id, *args, name="country-by-code", domain=""):
        return {"id": case_id, "name": name, "domain": domain, "args": list(args)}

    for name, value in [*common(), *heights()]:
        yield call(name, value)
    yield {"id": "no_argument_list", "name": "country-by-code", "domain": None, "args": None}
    yield call("no_arguments")
    yield call("two", s("active"), s("EU"))
    yield call("collision_1", s("a:b"), s("c"))
    yield call("collision_2", s("a"), s("b:c"))
    yield call("nulls", s("x"), NULL, s("y"))
    yield call("list_in_the_middle", s("x"), items(i(1), i(2)), s("y"))
    yield call("list_texts", items(s(""), s("NO-ARG"), s("a,b"), NULL))
    yield call("list_of_null_lists", items(items(NULL), NULL, items(items())))
    yield from (call("domain/%d" % n, s("FR"), domain=d) for n, d in enumerate(("country", " d ", " \t", "\u3000", "\u00a0", "\u2007", "\x1f", "\x85")))
    yield from (call("float/" + b, {"t": "float", "bits": b}) for b in FLOATS)
    yield from (call("double/" + b, {"t": "double", "bits": b}) for b in ("0x7ff8000000000000", "0x7ff0000000000000", "0xfff0000000000000"))
    yield from (call("decimal/" + d, {"t": "bigdecimal", "v": d}) for d in DECIMALS)
    yield from (call("path/%d" % n, p) for n, p in enumerate(paths()))
    yield call("bigint", {"t": "bigint", "v": str(2**64)}, {"t": "bigint", "v": str(-(2**200))})
    yield call("char", {"t": "char", "v": ":"}, {"t": "char", "v": "é"})
    yield call("uuid", {"t": "uuid", "v": UUID})
    yield call("enum", {"t": "enum", "v": "ACTIVE", "to_string": "Status:A"})
    yield call("object", {"t": "object", "class": "record Money", "to_string": "Money[currency=EUR, amount=42]"})
    yield from (call("identity/%d" % h, {"t": "object_identity", "class": "a.B", "hash": h}) for h in (51966, 0, -1))
    yield call("optional", {"t": "optional", "v": s("FR")}, {"t": "optional", "v": None}, {"t": "optional", "v": items(i(1), NULL)})
    yield call("set", {"t": "set", "v": [i(33), i(1), i(17)]})
    yield call("set/iteration_order", {"t": "set", "impl": "HashSet", "v": [s("b"), s("a,x")], "iteration_order": ["a,x", "b"]})
    yield call("array", {"t": "array", "elem": "char", "v": [{"t": "char", "v": "a"}, {"t": "char", "v": ","}]})
    yield call("map/texts", entries(("a=b", s("c, d")), ("{", s("]")), ("", s("NO-ARG")), ("n", NULL)))
    yield call("map/keys", entries((i(1), f(1.5)), ({"t": "bool", "v": True}, items(s("x"), items()))))
    yield call("map/in_list", items(entries(("a", i(1)))))
    yield call("reject/bare_object", {"t": "object"})
    yield call("reject/decimal", {"t": "bigdecimal", "v": "NaN"})
    yield call("reject/decimal_two_signs", {"t": "bigdecimal", "v": "1e+-0"})
    yield call("optional/null", {"t": "optional", "v": NULL})
    yield call("map/big_integer_keys", entries((i(2**64), i(1)), (i(-(2**64)), i(2))))


def auto_cases():
    def call(case_id, *args, kwargs=(), namespace="test", module="app.mod", qualname="fn", integrity=True, serializer="std"):
        return {"id": case_id, "namespace": namespace, "module": module, "qualname": qualname, "args": list(args), "kwargs": [list(k) for k in kwargs],
                "integrity": integrity, "serializer": serializer}  # fmt: skip

    def array(dtype, hexadecimal, count):
        return {"t": "array", "dtype": dtype, "shape": [count], "order": "<", "step": 1, "rep": [hexadecimal, count]}

    for name, value in [*common(), *arguments_of_both_cachekit_schemes()]:
        yield call(name, value)
    yield call("no_arguments")
    yield call("keywords", i(1), kwargs=[("zeta", i(2)), ("été", NULL), ("A", items())])
    yield call("positional", i(42))
    yield call("keyword", kwargs=[("id", i(42))])
    yield from (call("serializer/" + (x or "empty"), i(1), serializer=x) for x in ("auto", "orjson", "arrow", "local", "default", "standard", "pythonic", "cbor", "toml", "STD", "<custom>:Café", ""))
    yield call("no_integrity", i(1), integrity=False)
    yield from (call("namespace/%d" % n, i(1), namespace=x) for n, x in enumerate((None, "", "a:b", "my ns", "a\r\nb", "a\tb", "é" * 146, "é" * 147, "😀" * 200, "n" * 146, "n" * 147)))
    yield from (call("function/%d" % n, i(1), module=m, qualname=q) for n, (m, q) in enumerate((("a..b", "..c"), ("my-pkg", "<lambda>"), ("", ""), ("m", "q" * 199), ("módulo", "f😀g"), ("a", "f g\n"))))
    yield from (call("map_keys/%d" % n, {"t": "map", "v": [[k, i(1)] for k in keys]}) for n, keys in enumerate((
        [i(2), i(-1), i(300)], [f(1.5), i(1), f(-2.0)], [{"t": "bytes", "v": "62"}, {"t": "bytes", "v": "61"}], [{"t": "bool", "v": True}, {"t": "bool", "v": False}], [NULL], [f(-0.0)])))  # fmt: skip
    yield from (call("nan/" + b, {"t": "f64", "v": b}) for b in ("0x7ff8000000000000", "0xfff8dead00000001", "0x7ff0000000000001", "0xfff0000000000000"))
    yield call("array/i32", array("i32", "01000000", 3))
    yield call("array/f64_limit", array("f64", "000000000000f03f", 12500))
    yield call("array/total_limit", {"t": "list", "rep": [array("f64", "000000000000f03f", 12500), 50]})
    yield call("array/none", array("i64", "", 0))
    yield call("reject/array_large", array("f64", "0000000000000000", 12501))
    yield call("reject/array_total", {"t": "list", "rep": [array("f64", "000000000000f03f", 12500), 50]}, kwargs=[("k", array("i32", "00000000", 1))])
    yield call("reject/array_type", array("u8", "00", 3))
    yield call("reject/array_shape", {"t": "array", "dtype": "i32", "shape": [2, 2], "order": "<", "step": 1, "rep": ["00000000", 4]})
    yield call("reject/set", {"t": "set", "v": [i(1)]})
    yield call("reject/mixed_keys", {"t": "map", "v": [[s("a"), i(1)], [i(1), i(2)]]})
    yield call("reject/uuid_key", {"t": "map", "v": [[{"t": "uuid", "v": UUID}, i(1)]]})
    yield call("reject/float_enum", {"t": "enum", "base": "float", "v": f(1.5)})
    yield call("enum/float_zero", {"t": "enum", "base": "float", "v": f(-0.0)})
    # An array is a list of lists once it is normalised, so it may lie less deep than a scalar.
    small_array = {"t": "array", "dtype": "i32", "shape": [1], "order": "<", "step": 1, "le": "01000000"}
    yield call("depth/array", {"t": "nest", "kind": "list", "depth": 507, "leaf": small_array})
    yield call("reject/deep_array", {"t": "nest", "kind": "list", "depth": 508, "leaf": small_array})
    yield call("depth/empty_innermost", {"t": "nest", "kind": "list", "depth": 509, "leaf": items()})
    yield call("reject/deep", {"t": "nest", "kind": "list", "depth": 510, "leaf": i(1)})
    yield call("reject/deep_map", {"t": "nest", "kind": "map", "depth": 510, "leaf": i(1)})


def interop_cases():
    def call(case_id, *args, namespace="users", operation="get_user"):
        return {"id": case_id, "namespace": namespace, "operation": operation, "args": list(args)}

    for name, value in [*common(), *heights(), *arguments_of_both_cachekit_schemes()]:
        yield call(name, value)
    yield call("no_arguments")
    yield call("sixteen", *[i(n) for n in range(16)])
    yield call("set/order", {"t": "set", "v": [i(3), i(-5), s("a"), f(1.5), i(200), i(3), f(3.0)]})
    yield call("set/of_sets", {"t": "set", "v": [{"t": "set", "v": [i(2), i(1)]}, {"t": "set", "v": []}, items(i(1), i(2))]})
    yield call("set/uuid_and_text", {"t": "set", "v": [{"t": "uuid", "v": UUID}, s(UUID.lower())]})
    yield call("bytearray", {"t": "bytearray", "v": "00ff"}, {"t": "strsub", "v": "a"}, {"t": "intsub", "v": 5})
    yield from (call("segment/" + n, i(1), namespace=n) for n in ("a", "0", "nsx", "a-", "app.", "a" * 64))
    yield from (call("operation/" + n, i(1), operation=n) for n in ("ns", "nsapi", "b_.-9"))
    yield from (call("reject/segment/%r" % n, i(1), namespace=n) for n in ("", "Users", "a:b", "a\n", "a b", "café", "ns", "nsapi", "a..b", "-a", ".a", "_a", "a" * 65, "a\0"))
    yield from (call("reject/operation/%r" % n, i(1), operation=n) for n in ("", "getUser", "x..", "op\n", "ａ"))
    yield from (call("reject/" + b, {"t": "f64", "v": b}) for b in ("0x7ff8000000000000", "0x7ff0000000000000", "0xfff0000000000000"))
    yield call("reject/int_key", {"t": "map", "v": [[i(1), i(1)]]})
    yield call("reject/array", {"t": "array", "dtype": "i32", "shape": [1], "order": "<", "step": 1, "le": "01000000"})


def value_cases():
    for name, value in [*common(), *heights()]:
        yield {"id": name, "value": value}
    yield from ({"id": "date/%d" % n, "value": {"t": "date", "c": m[0][:3]}} for n, m in enumerate(MOMENTS[:5]))
    yield from ({"id": "time/%d" % n, "value": {"t": "time", "c": c}} for n, c in enumerate(([10, 30], [0, 0, 1], [23, 59, 59, 999999], [1, 2, 3, 450000])))
    yield {"id": "nested", "value": entries(("z", moment(*MOMENTS[2])), ("a", items({"t": "date", "c": [2024, 2, 29]})))}
    yield {"id": "sentinel_by_hand", "value": entries(("__datetime__", {"t": "bool", "v": True}), ("value", s("2024-01-01T12:30:45.123456+00:00")))}
    rejects = [("set", {"t": "set", "v": [i(1)]}), ("uuid", {"t": "uuid", "v": UUID}), ("decimal", {"t": "decimal", "v": "1"}),
               ("path", {"t": "path", "flavour": "posix", "v": "/a"}), ("nan", f(float("nan"))), ("inf", f(float("inf"))), ("int", i(2**64)),
               ("int_key", {"t": "map", "v": [[i(1), i(1)]]}), ("duplicate_key", entries(("a", i(1)), ("a", i(2)))), ("object", {"t": "object"})]  # fmt: skip
    yield from ({"id": "reject/" + name, "value": value} for name, value in rejects)


def expanded(case):
    """A case without compact test data."""
    full = dict(case)
    if full.get("args"):
        full["args"] = [expand(a) for a in full["args"]]
    if full.get("kwargs"):
        full["kwargs"] = [[name, expand(v)] for name, v in full["kwargs"]]
    if "value" in full:
        full["value"] = expand(full["value"])
    return full


def main():
    directory = pathlib.Path(__file__).resolve().parent.parent / "vectors" / "keys"
    for scheme, cases in (("failover", failover_cases), ("cachekit-auto", auto_cases), ("interop", interop_cases), ("interop-value", value_cases)):
        lines, seen = [], set()
        for case in cases():
            assert case["id"] not in seen, case["id"]
            seen.add(case["id"])
            out = {}
            for variant in oracle.VARIANTS[scheme][1]:
                try:
                    answer = oracle.answer(scheme, variant, expanded(case))
                    out[variant] = {k: v for k, v in answer.items() if len(v) <= 1024}
                except oracle.Refused as refused:
                    out[variant] = {"error": refused.code}
            lines.append(json.dumps({"in": case, "out": out}, ensure_ascii=True, separators=(",", ":")))
        (directory / (scheme + ".jsonl")).write_text("\n".join(lines) + "\n", encoding="ascii")
        print("%s: %d cases" % (scheme, len(lines)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
