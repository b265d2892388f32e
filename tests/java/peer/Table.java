package peer;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Timestamp;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/**
 * The failover table as the Java library uses it: its statements, its way to bind and read times (java.sql.Timestamp, in the zone of this
 * JVM), payloads as Jackson's JSON with the class of the object beside it.
 */
final class Table {
  /** One row, its payload an object again. */
  record Row(String name, String key, Instant asOf, Instant expireOn, Object payload) {}

  private static final String COLUMNS = "FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS";

  private final Connection connection;
  private final ObjectMapper json;
  private final String table;

  Table(Connection connection, ObjectMapper json, String prefix) {
    this.connection = connection;
    this.json = json;
    this.table = prefix + "FAILOVER_STORE";
  }

  int insert(Row row) throws Exception { return write("INSERT INTO " + table + " (" + COLUMNS + ") VALUES (?, ?, ?, ?, ?, ?)", row, 1, 3); }

  int update(Row row) throws Exception {
    return write("UPDATE " + table + " SET AS_OF = ? , EXPIRE_ON = ? , PAYLOAD = ? , PAYLOAD_CLASS = ? WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ?",
        row, 5, 1);
  }

  int merge(Row row) throws Exception {
    return write("INSERT INTO " + table + " (" + COLUMNS + ") VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (FAILOVER_NAME, FAILOVER_KEY) DO UPDATE SET"
        + " AS_OF = EXCLUDED.AS_OF, EXPIRE_ON = EXCLUDED.EXPIRE_ON, PAYLOAD = EXCLUDED.PAYLOAD, PAYLOAD_CLASS = EXCLUDED.PAYLOAD_CLASS", row, 1, 3);
  }

  /** The three ways to write differ in the order of their parameters only. */
  private int write(String sql, Row row, int identity, int data) throws Exception {
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      statement.setString(identity, row.name());
      statement.setString(identity + 1, row.key());
      statement.setTimestamp(data, Timestamp.from(row.asOf()));
      statement.setTimestamp(data + 1, Timestamp.from(row.expireOn()));
      statement.setString(data + 2, row.payload() == null ? null : json.writeValueAsString(row.payload()));
      statement.setString(data + 3, row.payload() == null ? null : row.payload().getClass().getName());
      return statement.executeUpdate();
    }
  }

  /** One row, or none. */
  List<Row> find(String name, String key) throws Exception {
    return read("SELECT " + COLUMNS + " FROM " + table + " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ?", name, key);
  }

  List<Row> findAll(String name) throws Exception { return read("SELECT " + COLUMNS + " FROM " + table + " WHERE FAILOVER_NAME = ?", name); }

  private List<Row> read(String sql, String... parameters) throws Exception {
    List<Row> rows = new ArrayList<>();
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      for (int i = 0; i < parameters.length; ++i) statement.setString(i + 1, parameters[i]);
      try (ResultSet found = statement.executeQuery()) {
        while (found.next()) rows.add(map(found));
      }
    }
    return rows;
  }

  private Row map(ResultSet row) throws Exception {
    Timestamp asOf = row.getTimestamp("AS_OF");
    Timestamp expireOn = row.getTimestamp("EXPIRE_ON");
    if (asOf == null || expireOn == null) throw new IllegalStateException("a time is missing");
    String className = row.getString("PAYLOAD_CLASS");
    String payload = row.getString("PAYLOAD");
    Object value = className == null || payload == null ? null : json.readValue(payload, Class.forName(className));
    return new Row(row.getString("FAILOVER_NAME"), row.getString("FAILOVER_KEY"), asOf.toInstant(), expireOn.toInstant(), value);
  }

  int delete(String name, String key) throws Exception {
    try (PreparedStatement statement = connection.prepareStatement("DELETE FROM " + table + " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ?")) {
      statement.setString(1, name);
      statement.setString(2, key);
      return statement.executeUpdate();
    }
  }

  int cleanUp(Instant before) throws Exception {
    try (PreparedStatement statement = connection.prepareStatement("DELETE FROM " + table + " WHERE EXPIRE_ON < ?")) {
      statement.setTimestamp(1, Timestamp.from(before));
      return statement.executeUpdate();
    }
  }
}
