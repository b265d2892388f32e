"""A server that speaks TDS 7.4, the protocol of SQL Server, so that the real FreeTDS driver can be tested. It is not SQL Server.

usage: tds_server.py PORT "libpq connection string without a database" USER PASSWORD

Statements run on PostgreSQL, in the database that the client names; REWRITES lists everything that is changed on the way. Answers carry
SQL Server's error numbers. There is no TLS and no MARS.
"""

import datetime
import re
import socket
import socketserver
import struct
import sys

import psycopg2

# What PostgreSQL needs changed, in order. The tests print this list in the documentation.
REWRITES = [
    ("a lock hint is dropped: PostgreSQL has none", r"\s+WITH\s*\((?:HOLDLOCK|ROWLOCK|READPAST|,|\s)+\)", ""),
    ("IF OBJECT_ID ... CREATE TABLE becomes CREATE TABLE IF NOT EXISTS", r"IF OBJECT_ID\('[^']*'\) IS NULL CREATE TABLE", "CREATE TABLE IF NOT EXISTS"),
    ("IF COL_LENGTH ... ALTER TABLE becomes ADD COLUMN IF NOT EXISTS", r"IF COL_LENGTH\('[^']*', '[^']*'\) IS NULL ALTER TABLE (\S+) ADD", r"ALTER TABLE \1 ADD COLUMN IF NOT EXISTS"),
    ("whether there is a column, from PostgreSQL's catalog", r"SELECT COUNT\(COL_LENGTH\('([^']*)', '([^']*)'\)\)",
     r"SELECT COUNT(*) FROM pg_attribute WHERE attrelid = to_regclass('\1') AND attname = LOWER('\2')"),
    ("IF NOT EXISTS (... sys.indexes ...) CREATE INDEX becomes CREATE INDEX IF NOT EXISTS", r"IF NOT EXISTS \(SELECT 1 FROM sys\.indexes WHERE name = '[^']*' AND object_id = OBJECT_ID\('[^']*'\)\) CREATE INDEX", "CREATE INDEX IF NOT EXISTS"),
    ("an index inside CREATE TABLE is left out", r",\s*INDEX\s+\w+\s*\([^)]*\)", ""),
    ("the collation is C", r"COLLATE Latin1_General_100_BIN2", 'COLLATE "C"'),
    ("DELETE TOP (n) with its bound becomes a delete of n rows", r"(?s)WITH bound AS \(SELECT (.*?) AS MOMENT\) DELETE TOP \((.*?)\) FROM (\S+) WHERE EXPIRE_ON < \(SELECT MOMENT FROM bound\)",
     r"DELETE FROM \3 WHERE ctid IN (SELECT ctid FROM \3 WHERE EXPIRE_ON < \1 LIMIT \2 FOR UPDATE SKIP LOCKED)"),
    ("a moment in UTC", r"CAST\(SWITCHOFFSET\((\w+), '\+00:00'\) AS DATETIME2\(7\)\)", r"(\1 AT TIME ZONE 'UTC')"),
    ("the clock", r"DATEDIFF_BIG\(MICROSECOND, '1970-01-01', SYSUTCDATETIME\(\)\)", "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint"),
    ("the clock", r"\bSYSUTCDATETIME\(\)", "(clock_timestamp() AT TIME ZONE 'UTC')"),
    ("names of types", r"N?VARCHAR\(MAX\)", "TEXT"),
    ("names of types", r"\bNVARCHAR\b", "VARCHAR"),
    ("names of types", r"VARBINARY\(MAX\)", "BYTEA"),
    ("names of types", r"DATETIMEOFFSET\(7\)", "TIMESTAMPTZ"),
]

# SQLSTATE: number, class, beginning of the text.
ERRORS = {
    "23505": (2627, 14, "Violation of PRIMARY KEY constraint. Cannot insert duplicate key."),
    "23502": (515, 16, "Cannot insert the value NULL."),
    "22001": (2628, 16, "String or binary data would be truncated."),
    "42P01": (208, 16, "Invalid object name."),
    "42703": (207, 16, "Invalid column name."),
    "42601": (102, 15, "Incorrect syntax."),
    "40P01": (1205, 13, "Transaction was deadlocked."),
    "40001": (1205, 13, "Transaction was deadlocked."),
}
COLLATION = bytes.fromhex("0904d00034")
MORE, FAILED, COUNTED, ATTENTION = 0x01, 0x02, 0x10, 0x20
DONE, DONE_PROCEDURE, DONE_IN_PROCEDURE = 0xFD, 0xFE, 0xFF
YEAR_ONE = datetime.date(1, 1, 1).toordinal()


class Refused(Exception):
    def __init__(self, number, severity, text):
        super().__init__(text)
        self.number, self.severity, self.text = number, severity, text


class Reader:
    """Bytes of a request, from front to back."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        piece = self.data[self.at:self.at + count]
        if len(piece) != count:
            raise Refused(50001, 16, "a request ended early")
        self.at += count
        return piece

    def number(self, layout):
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))[0]

    def byte(self):
        return self.take(1)[0]

    def peek(self):
        return self.data[self.at] if self.at < len(self.data) else None

    def pieces(self):
        """A value that comes in pieces (PLP)."""
        if self.number("Q") == 0xFFFFFFFFFFFFFFFF:
            return None
        value = bytearray()
        while size := self.number("I"):
            value += self.take(size)
        return bytes(value)


def moment(days, ticks):
    """From days since year 1 and ticks of 100 ns; as a literal of PostgreSQL, in UTC, digits cut off."""
    date = datetime.date.fromordinal(YEAR_ONE + days)
    seconds, rest = divmod(ticks, 10_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest // 10:06d}"
    return f"'{date.year:04d}-{date.month:02d}-{date.day:02d} {clock}+00'::timestamptz"


def text_literal(text):
    return "'" + text.replace("'", "''") + "'"


def read_value(reader):
    """One parameter, as a literal of PostgreSQL (or as Python's int or str where a procedure needs it)."""
    kind = reader.byte()
    if kind in (0xE7, 0xEF, 0xA7, 0xAF, 0xA5, 0xAD):  # nvarchar, nchar, varchar, char, varbinary, binary
        longest = reader.number("H")
        wide, binary = kind in (0xE7, 0xEF), kind in (0xA5, 0xAD)
        if not binary:
            reader.take(5)
        if longest == 0xFFFF:
            raw = reader.pieces()
        else:
            size = reader.number("H")
            raw = None if size == 0xFFFF else reader.take(size)
        if raw is None:
            return None
        return raw if binary else raw.decode("utf-16-le" if wide else "latin-1")
    if kind in (0x63, 0x23, 0x22):  # ntext, text, image
        reader.take(4)
        if kind != 0x22:
            reader.take(5)
        size = reader.number("i")
        raw = None if size < 0 else reader.take(size)
        if raw is None or kind == 0x22:
            return raw
        return raw.decode("utf-16-le" if kind == 0x63 else "latin-1")
    if kind == 0x26:  # integer
        reader.byte()
        size = reader.byte()
        return None if size == 0 else int.from_bytes(reader.take(size), "little", signed=True)
    if kind == 0x6F:  # datetime: 1/300 seconds since 1900
        reader.byte()
        if reader.byte() == 0:
            return None
        days, thirds = reader.number("i"), reader.number("I")
        return ("moment", moment(days + datetime.date(1900, 1, 1).toordinal() - YEAR_ONE, thirds * 100_000 // 3))
    if kind in (0x2A, 0x2B):  # datetime2, datetimeoffset
        scale, size = reader.byte(), reader.byte()
        if size == 0:
            return None
        offset = 2 if kind == 0x2B else 0
        ticks = int.from_bytes(reader.take(size - 3 - offset), "little") * 10 ** (7 - scale)
        days = int.from_bytes(reader.take(3), "little")
        reader.take(offset)  # the time is in UTC already
        return ("moment", moment(days, ticks))
    raise Refused(50002, 16, f"the type 0x{kind:02x} of a parameter is not known here")


def literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, tuple):
        return value[1]
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea"
    if isinstance(value, int):
        return str(value)
    return text_literal(value)


def translate(text, parameters):
    if re.match(r"(?i)\s*MERGE\b", text) and not text.rstrip().endswith(";"):
        raise Refused(10713, 15, "A MERGE statement must be terminated by a semi-colon (;).")
    for _, pattern, replacement in REWRITES:
        text = re.sub(pattern, replacement, text)
    return re.sub(r"@P(\d+)\b", lambda found: literal(parameters[int(found.group(1)) - 1]), text)


def counted(text, layout="B"):
    return struct.pack("<" + layout, len(text)) + text.encode("utf-16-le")


def done(token, status, count=0):
    return struct.pack("<BHHQ", token, status, 0, count)


def failure(number, severity, text):
    body = struct.pack("<IBB", number, 1, severity) + counted(text[:1000], "H") + counted("TESTS") + counted("") + struct.pack("<I", 1)
    return b"\xaa" + struct.pack("<H", len(body)) + body


def change(*parts):
    body = b"".join(parts)
    return b"\xe3" + struct.pack("<H", len(body)) + body


NUMBERS, BYTES, LOCAL_TIME, TIME = (20, 21, 23), (17,), (1114,), (1184,)


def describe(columns):
    result = b"\x81" + struct.pack("<H", len(columns))
    for column in columns:
        result += struct.pack("<IH", 0, 1)
        if column.type_code in NUMBERS:
            result += b"\x26\x08"
        elif column.type_code in LOCAL_TIME:
            result += b"\x2a\x07"
        elif column.type_code in TIME:
            result += b"\x2b\x07"
        elif column.type_code in BYTES:
            result += b"\xa5\xff\xff"
        else:
            result += b"\xe7\xff\xff" + COLLATION
        result += counted(column.name.upper())
    return result


def write_value(column, value):
    if column.type_code in NUMBERS:
        return b"\x00" if value is None else b"\x08" + struct.pack("<q", value)
    if column.type_code in LOCAL_TIME + TIME:
        if value is None:
            return b"\x00"
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc)
        ticks = ((value.hour * 60 + value.minute) * 60 + value.second) * 10_000_000 + value.microsecond * 10
        raw = ticks.to_bytes(5, "little") + (value.toordinal() - YEAR_ONE).to_bytes(3, "little")
        if column.type_code in TIME:
            raw += b"\x00\x00"
        return bytes([len(raw)]) + raw
    if value is None:
        return b"\xff" * 8
    raw = bytes(value) if column.type_code in BYTES else str(value).encode("utf-16-le")
    return struct.pack("<Q", len(raw)) + (struct.pack("<I", len(raw)) + raw if raw else b"") + struct.pack("<I", 0)


class Session(socketserver.BaseRequestHandler):
    def receive(self):
        """One message: its type and its body."""
        body = bytearray()
        while True:
            header = self.exactly(8)
            if header is None:
                return None, b""
            kind, status, length = header[0], header[1], struct.unpack(">H", header[2:4])[0]
            part = self.exactly(length - 8)
            if part is None:
                return None, b""
            body += part
            if status & 1:
                return kind, bytes(body)

    def exactly(self, count):
        data = bytearray()
        while len(data) < count:
            piece = self.request.recv(count - len(data))
            if not piece:
                return None
            data += piece
        return bytes(data)

    def send(self, body):
        room = 4096 - 8
        packets = bytearray()
        for start in range(0, max(len(body), 1), room):
            piece = body[start:start + room]
            packets += struct.pack(">BBHHBB", 4, 1 if start + room >= len(body) else 0, len(piece) + 8, 0, (start // room + 1) & 255, 0) + piece
        self.request.sendall(packets)

    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.database, self.in_transaction, self.prepared = None, False, {}
        try:
            if self.log_in():
                self.serve()
        except OSError:
            pass  # the client went away
        finally:
            if self.database is not None:
                self.database.close()

    def log_in(self):
        kind, body = self.receive()
        if kind == 0x12:  # what is offered: version, no encryption, no instance, no thread, no MARS
            options = [(0, bytes.fromhex("0f0007d00000")), (1, b"\x02"), (2, b"\x00"), (3, b""), (4, b"\x00")]
            table, values, offset = b"", b"", 5 * len(options) + 1
            for token, value in options:
                table += struct.pack(">BHH", token, offset + len(values), len(value))
                values += value
            self.send(table + b"\xff" + values)
            kind, body = self.receive()
        if kind != 0x10:
            return False

        def field(index):
            offset, length = struct.unpack("<HH", body[36 + 4 * index:40 + 4 * index])
            return body[offset:offset + 2 * length]

        user = field(1).decode("utf-16-le")
        password = bytes(((b ^ 0xA5) >> 4 | (b ^ 0xA5) << 4) & 255 for b in field(2)).decode("utf-16-le")
        name = field(8).decode("utf-16-le") or "master"
        if (user, password) != (USER, PASSWORD):
            self.send(failure(18456, 14, f"Login failed for user '{user}'.") + done(DONE, FAILED))
            return False
        self.database = psycopg2.connect(f"{TARGET} dbname={name}")
        self.database.set_session(isolation_level="READ COMMITTED")
        greeting = b"\x01" + bytes.fromhex("74000004") + counted("Microsoft SQL Server") + bytes.fromhex("0f0007d0")
        self.send(change(b"\x01", counted(name), counted("master")) + change(b"\x07\x05", COLLATION, b"\x00")
                  + change(b"\x04", counted("4096"), counted("4096"))
                  + b"\xad" + struct.pack("<H", len(greeting)) + greeting + done(DONE, 0))
        return True

    def serve(self):
        while True:
            kind, body = self.receive()
            if kind is None:
                return
            if kind == 6:
                self.send(done(DONE, ATTENTION))
                continue
            payload = body[struct.unpack("<I", body[:4])[0]:]
            if kind == 1:
                self.send(self.answer(lambda: self.run(payload.decode("utf-16-le"), [], DONE), DONE))
            elif kind == 3:
                self.send(self.procedures(Reader(payload)))
            elif kind == 0x0E:
                self.send(self.transaction(Reader(payload)))
            else:
                self.send(failure(50003, 16, f"a message of type {kind}") + done(DONE, FAILED))

    def transaction(self, reader):
        request = reader.number("H")
        begun = change(b"\x08\x08", struct.pack("<Q", 1), b"\x00")
        if request == 5:
            self.in_transaction = True
            return begun + done(DONE, 0)
        if request == 7:
            self.database.commit()
        else:
            self.database.rollback()
        self.in_transaction = False
        answer = change(b"\x09" if request == 7 else b"\x0a", b"\x00\x08", struct.pack("<Q", 1))
        reader.take(reader.byte())  # the name
        if reader.peek() is not None and reader.byte() & 1:  # and begins the next one
            self.in_transaction = True
            answer += begun
        return answer + done(DONE, 0)

    def answer(self, work, token):
        """A failed statement does not fail the transaction it is in, as in SQL Server."""
        try:
            if self.in_transaction:
                self.database.cursor().execute("SAVEPOINT before_statement")
            return work()
        except Refused as problem:
            number, severity, text = problem.number, problem.severity, problem.text
        except psycopg2.Error as problem:
            number, severity, text = ERRORS.get(problem.pgcode, (50000, 16, "PostgreSQL says:"))
            text += " " + str(problem).replace("\n", " ")
        if self.in_transaction:
            self.database.cursor().execute("ROLLBACK TO SAVEPOINT before_statement")
        else:
            self.database.rollback()
        return failure(number, severity, text) + (b"\x79" + struct.pack("<i", -6) if token == DONE_PROCEDURE else b"") + done(token, FAILED)

    def run(self, text, parameters, token):
        more = MORE if token == DONE_IN_PROCEDURE else 0
        if re.match(r"(?i)\s*(SET|USE|IF @@TRANCOUNT)\b", text):
            return done(token, more)
        cursor = self.database.cursor()
        cursor.execute(translate(text, parameters))
        result, count = b"", max(cursor.rowcount, 0)
        if cursor.description:
            rows = cursor.fetchall()
            result = describe(cursor.description) + b"".join(
                b"\xd1" + b"".join(write_value(c, v) for c, v in zip(cursor.description, row)) for row in rows)
        if not self.in_transaction:
            self.database.commit()
        return result + done(token, COUNTED | more, count)

    def procedures(self, reader):
        """One call, or many of them in one message: that is how arrays of parameters travel."""
        answers = []
        while reader.peek() is not None:
            name, arguments = self.read_call(reader)
            answers.append(self.answer(lambda: self.call(name, arguments), DONE_PROCEDURE))
        # All but the last say that there is more.
        for i in range(len(answers) - 1):
            status = struct.unpack("<H", answers[i][-12:-10])[0] | MORE
            answers[i] = answers[i][:-12] + struct.pack("<H", status) + answers[i][-10:]
        return b"".join(answers)

    @staticmethod
    def read_call(reader):
        length = reader.number("H")
        if length == 0xFFFF:
            name = {10: "sp_executesql", 11: "sp_prepare", 12: "sp_execute", 13: "sp_prepexec", 15: "sp_unprepare"}.get(reader.number("H"), "?")
        else:
            name = reader.take(2 * length).decode("utf-16-le").lower()
        reader.number("H")
        arguments = []
        while reader.peek() not in (None, 0xFF, 0x80):
            reader.take(2 * reader.byte())  # its name
            reader.byte()
            arguments.append(read_value(reader))
        if reader.peek() is not None:
            reader.byte()
        return name, arguments

    def call(self, name, arguments):
        handle, result = b"", b""
        if name == "sp_executesql":
            result = self.run(arguments[0], arguments[2:], DONE_IN_PROCEDURE)
        elif name in ("sp_prepare", "sp_prepexec"):
            number = len(self.prepared) + 1
            self.prepared[number] = arguments[2]
            if name == "sp_prepexec":
                result = self.run(arguments[2], arguments[3:], DONE_IN_PROCEDURE)
            handle = b"\xac\x00\x00\x00\x01" + struct.pack("<IH", 0, 0) + b"\x26\x04\x04" + struct.pack("<i", number)
        elif name == "sp_execute":
            if arguments[0] not in self.prepared:
                raise Refused(8179, 16, f"Could not find prepared statement with handle {arguments[0]}.")
            result = self.run(self.prepared[arguments[0]], arguments[1:], DONE_IN_PROCEDURE)
        elif name != "sp_unprepare":
            raise Refused(2812, 16, f"Could not find stored procedure '{name}'.")
        return result + b"\x79" + struct.pack("<i", 0) + handle + done(DONE_PROCEDURE, 0)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64


if __name__ == "__main__":
    TARGET, USER, PASSWORD = sys.argv[2:5]
    with Server(("127.0.0.1", int(sys.argv[1])), Session) as server:
        print("listening", flush=True)
        server.serve_forever()
