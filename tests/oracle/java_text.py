"""How Java prints numbers, decimals and moments: the parts of the failover scheme that Python prints differently.

Written from the documented behaviour of Double.toString, Float.toString (JDK 19 and later), BigDecimal.toString and
Instant.toString, with exact integer arithmetic where rounding matters.
"""

import datetime
import decimal
import struct
from fractions import Fraction


def double_text(bits):
    """Double.toString of the 64-bit pattern."""
    special = _special(bits, exponent_bits=11, fraction_bits=52)
    if special is not None:
        return special
    number = abs(struct.unpack(">d", struct.pack(">Q", bits))[0])
    digits, exponent = _decimal_digits(repr(number))
    if len(digits) == 1:
        # Java compares candidates of at least two digits: 4.9E-324 is nearer to the number than 5.0E-324.
        two = "%.1e" % number
        if float(two) == number:
            digits, exponent = _decimal_digits(two)
    return ("-" if bits >> 63 else "") + _layout(digits, exponent)


def float_text(bits):
    """Float.toString of the 32-bit pattern: as many digits as a float needs, not as many as a double would."""
    special = _special(bits, exponent_bits=8, fraction_bits=23)
    if special is not None:
        return special
    digits, exponent = _shortest_float(bits & 0x7FFFFFFF)
    return ("-" if bits >> 31 else "") + _layout(digits, exponent)


def decimal_text(text):
    """BigDecimal.toString of a number written as `text`: Python's Decimal prints alike, but knows a negative zero."""
    number = decimal.Decimal(text)
    if not number.is_finite():
        raise ValueError("BigDecimal has no NaN and no infinity")
    if number.is_zero():
        number = number.copy_abs()
    return str(number)


def instant_text(components, offset_us):
    """Instant.toString, always in UTC: a fraction of 0, 3, 6 or 9 digits; years beyond 9999 carry a sign."""
    year, month, day, hour, minute, second, micros = components
    # Python's calendar has the years 1 to 9999, but an offset of less than a day can reach the years 0 and 10000.
    # Both neighbours are leap-year compatible 400 years away, so the arithmetic is done there.
    shift = 400 if year == 1 else -400 if year == 9999 else 0
    moment = datetime.datetime(year + shift, month, day, hour, minute, second, micros) - datetime.timedelta(microseconds=offset_us)
    year = moment.year - shift
    text = ("+%d" if year > 9999 else "%04d") % year + moment.strftime("-%m-%dT%H:%M:%S")
    if moment.microsecond % 1000:
        text += ".%06d" % moment.microsecond
    elif moment.microsecond:
        text += ".%03d" % (moment.microsecond // 1000)
    return text + "Z"


def _special(bits, exponent_bits, fraction_bits):
    sign = "-" if bits >> (exponent_bits + fraction_bits) else ""
    magnitude = bits & ((1 << (exponent_bits + fraction_bits)) - 1)
    if magnitude == 0:
        return sign + "0.0"
    if magnitude >> fraction_bits == (1 << exponent_bits) - 1:
        return "NaN" if magnitude & ((1 << fraction_bits) - 1) else sign + "Infinity"
    return None


def _decimal_digits(text):
    """`1.25e-3` as ("125", -3): significant digits and the decimal exponent of the first one."""
    _, digits, exponent = decimal.Decimal(text).as_tuple()
    exponent += len(digits) - 1
    return "".join(map(str, digits)).rstrip("0") or "0", exponent


def _layout(digits, exponent):
    if -3 <= exponent < 7:
        if exponent < 0:
            return "0." + "0" * (-exponent - 1) + digits
        digits = digits.ljust(exponent + 1, "0")
        return digits[: exponent + 1] + "." + (digits[exponent + 1 :] or "0")
    return digits[0] + "." + (digits[1:] or "0") + "E%d" % exponent


def _shortest_float(bits):
    """The shortest decimal (of two digits at least) that rounds to this positive float; of several, the nearest to it."""
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    significand, power = (fraction | 0x800000, exponent - 150) if exponent else (fraction, -149)
    number = Fraction(significand) * Fraction(2) ** power
    above = (Fraction(significand) + Fraction(1, 2)) * Fraction(2) ** power
    # Below a power of two the floats lie twice as dense.
    gap = Fraction(1, 4) if fraction == 0 and exponent > 1 else Fraction(1, 2)
    below = (Fraction(significand) - gap) * Fraction(2) ** power
    closed = significand % 2 == 0

    def rounds_to_number(candidate):
        return below <= candidate <= above if closed else below < candidate < above

    ten = decimal.Decimal(number.numerator) / decimal.Decimal(number.denominator)
    leading = ten.adjusted()
    for digits in range(2, 10):
        unit = Fraction(10) ** (leading - digits + 1)
        lower = number // unit
        fitting = [n for n in (lower, lower + 1) if rounds_to_number(n * unit)]
        if fitting:
            best = min(fitting, key=lambda n: (abs(n * unit - number), n % 2))
            return _decimal_digits("%de%d" % (best, leading - digits + 1))
    raise AssertionError("nine digits tell every float apart")
