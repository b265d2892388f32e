import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.Map;

/** Runs the store's statements of one dialect on an engine that stands in for it, through JDBC, and checks what they do.
 *
 * The plan has a line for each thing, its parts separated by tabs: `engine LABEL URL`, `exec SQL`, `NAME SQL [ORDER]`, and `end`, which runs
 * all of it. Prints `LABEL NAME ok` or `LABEL NAME what went wrong`.
 */
public final class StandIns {
  private static final OffsetDateTime START = OffsetDateTime.of(2026, 11, 15, 12, 0, 0, 123_456_000, ZoneOffset.UTC);
  private static final OffsetDateTime HORIZON = START.plusMinutes(5);

  private final String label;
  private final String url;
  private final Map<String, String> texts = new HashMap<>();
  private final Connection connection;
  private int[] order = {0, 1, 2, 3, 4, 5, 6};

  private StandIns(String label, String url) throws SQLException {
    this.label = label;
    this.url = url;
    this.connection = url.contains("user=") ? DriverManager.getConnection(url) : DriverManager.getConnection(url, "sa", "");
  }

  public static void main(String[] arguments) throws Exception {
    StandIns one = null;
    for (String line : Files.readAllLines(Path.of(arguments[0]))) {
      String[] parts = line.split("\t");
      switch (parts[0]) {
        case "engine" -> one = new StandIns(parts[1], parts[2]);
        case "exec" -> one.execute(parts[1]);
        case "end" -> one.run();
        default -> {
          one.texts.put(parts[0], parts[1]);
          if (parts.length > 2) {
            String[] numbers = parts[2].split(",");
            one.order = new int[numbers.length];
            for (int i = 0; i < numbers.length; ++i) one.order[i] = Integer.parseInt(numbers[i]);
          }
        }
      }
    }
  }

  private interface Step {
    void run() throws Exception;
  }

  private void check(String name, Step step) {
    String result = "ok";
    try {
      step.run();
    } catch (Exception | AssertionError problem) {
      result = problem.getClass().getSimpleName() + ": " + String.valueOf(problem.getMessage()).replace('\n', ' ').replace('\t', ' ');
    }
    System.out.println(label + "\t" + name + "\t" + result);
  }

  private static void same(Object expected, Object actual) {
    if (expected == null ? actual != null : !expected.equals(actual)) throw new AssertionError("expected " + expected + ", not " + actual);
  }

  private void execute(String text) {
    check("schema", () -> {
      try (Statement s = connection.createStatement()) {
        s.execute(text);
      }
    });
  }

  private void bind(PreparedStatement to, int at, Object value) throws SQLException {
    if (value instanceof OffsetDateTime when) {
      // HSQLDB takes no OffsetDateTime where it has to guess the type; the process runs in UTC.
      if (url.contains("hsqldb")) to.setTimestamp(at, Timestamp.from(when.toInstant()));
      else to.setObject(at, when);
    } else if (value == null) {
      to.setString(at, null);
    } else {
      to.setObject(at, value);
    }
  }

  private int change(String name, Object... values) throws SQLException {
    try (PreparedStatement s = connection.prepareStatement(texts.get(name))) {
      for (int i = 0; i < values.length; ++i) bind(s, i + 1, values[i]);
      return s.executeUpdate();
    }
  }

  private String ask(String name, int column, Object... values) throws SQLException {
    try (PreparedStatement s = connection.prepareStatement(texts.get(name))) {
      for (int i = 0; i < values.length; ++i) bind(s, i + 1, values[i]);
      StringBuilder all = new StringBuilder();
      try (ResultSet rows = s.executeQuery()) {
        while (rows.next()) all.append(all.isEmpty() ? "" : ",").append(rows.getString(column));
      }
      return all.toString();
    }
  }

  private void put(String key, OffsetDateTime asOf, String payload, String payloadClass) throws SQLException {
    Object[] row = {"n", key, asOf, START.plusHours(1), payload, payloadClass, HORIZON};
    Object[] bound = new Object[order.length];
    for (int i = 0; i < order.length; ++i) bound[i] = row[order[i]];
    change("upsert", bound);
  }

  private String payload(String key) throws SQLException {
    return ask("find", 3, "n", key);
  }

  private void run() {
    check("upsert", () -> {
      put("k", START, "first", "c");
      same("first", payload("k"));
      put("k", START.minusSeconds(1), "older", "c");
      same("first", payload("k"));
      put("k", START, "same moment, later", "c");
      same("same moment, later", payload("k"));
      put("k", START.plusNanos(1000), "newer", "c");
      same("newer", payload("k"));
      put("k", START.plusSeconds(1), null, null);
      same("null", payload("k"));
      put("k", START.plusMinutes(10), "from the future", "c");
      put("k", START.plusSeconds(2), "now", "c");
      same("now", payload("k"));
      String large = "x".repeat(99_000);
      put("k", START.plusSeconds(3), large, "c");
      same(large, payload("k"));
      put("k", START.plusSeconds(4), "\uD83D\uDE00 '", "c");
      same("\uD83D\uDE00 '", payload("k"));
    });
    check("an empty payload", () -> {
      put("empty", START, "", "c");
      String expected = texts.getOrDefault("empty_is", "");
      same(expected, payload("empty"));
    });
    check("find", () -> {
      same("2026-11-15 12:00:04.123456", ask("find", 1, "n", "k").substring(0, 26));
      same("", payload("nobody"));
    });
    check("find_all", () -> {
      put("a", START, "1", "c");
      put("b", START, "2", "c");
      same("a,b", ask("find_first", 1, "n", 2));
      same("b,empty", ask("find_after", 1, "n", "a", 2));
    });
    check("count", () -> same("4", ask("count", 1, "n")));
    check("name_after", () -> same("n", ask("name_after", 1, "m")));
    check("insert, update", () -> {
      change("insert", "n", "i", START, START.plusHours(1), "1", "c");
      try {
        change("insert", "n", "i", START, START.plusHours(1), "1", "c");
        throw new AssertionError("the second insert was taken");
      } catch (SQLException duplicate) {
        same("23505", duplicate.getSQLState());
      }
      same(1, change("update", START, START.plusHours(1), "2", "c", "n", "i", START.plusNanos(1000), HORIZON));
      same(0, change("update", START.minusSeconds(1), START.plusHours(1), "3", "c", "n", "i", START.minusSeconds(1).plusNanos(1000), HORIZON));
      same("2", payload("i"));
    });
    check("rewrite", () -> {
      same(0, change("rewrite", "new", "n", "i", START, START.plusNanos(1000), "other"));
      same(1, change("rewrite", "new", "n", "i", START, START.plusNanos(1000), "2"));
      same("new", payload("i"));
    });
    check("erase", () -> {
      same(0, change("erase", "n", "i", START.minusSeconds(1), START.minusSeconds(1).plusNanos(1000)));
      same(1, change("erase", "n", "i", START, START.plusNanos(1000)));
    });
    check("expire", () -> {
      same(0, change("expire", START, 10));
      same(3, change("expire", START.plusHours(2), 3));
      same(1, change("expire", START.plusHours(2), 3));
    });
  }
}
