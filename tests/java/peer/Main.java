package peer;

import com.acme.Country;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;

/** A Java service on the failover table, driven by a test: one JSON object for each line that comes in, one for each answer. */
public final class Main {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Main() {}

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (Connection connection = DriverManager.getConnection(args[0], "holdfast", "secret")) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        ObjectNode answer;
        try {
          answer = answer(connection, JSON.readTree(line));
        } catch (Exception e) {
          answer = JSON.createObjectNode().put("error", e.toString());
        }
        out.println(JSON.writeValueAsString(answer));
      }
    }
  }

  private static ObjectNode answer(Connection connection, JsonNode asked) throws Exception {
    ObjectNode result = JSON.createObjectNode();
    Table table = new Table(connection, JSON, asked.path("prefix").asText());
    String name = asked.path("name").asText();
    String key = asked.path("key").asText();
    switch (asked.get("op").asText()) {
      case "key" -> {
        String raw = Keys.raw(JSON.convertValue(asked.get("args"), List.class));
        result.put("raw", raw).put("key", Keys.key(Keys.effectiveName(name, asked.path("domain").asText()), raw));
      }
      case "insert" -> result.put("rows", table.insert(row(asked)));
      case "update" -> result.put("rows", table.update(row(asked)));
      case "merge" -> result.put("rows", table.merge(row(asked)));
      case "find" -> describe(table.find(name, key), result.putArray("found"));
      case "find_all" -> describe(table.findAll(name), result.putArray("found"));
      case "delete" -> result.put("rows", table.delete(name, key));
      case "clean_up" -> result.put("rows", table.cleanUp(Instant.parse(asked.get("before").asText())));
      default -> throw new IllegalArgumentException("what is " + asked + "?");
    }
    return result;
  }

  /** The payload becomes the object that an application would have had, so that what is written is what Jackson makes of it. */
  private static Table.Row row(JsonNode asked) throws Exception {
    Object payload = switch (asked.path("as").asText()) {
      case "country" -> JSON.treeToValue(asked.get("payload"), Country.class);
      case "list.of" -> List.of(JSON.treeToValue(asked.get("payload"), Country[].class));
      case "array list" -> new java.util.ArrayList<>(Arrays.asList(JSON.treeToValue(asked.get("payload"), Country[].class)));
      case "array" -> JSON.treeToValue(asked.get("payload"), Country[].class);
      default -> null;
    };
    return new Table.Row(asked.get("name").asText(), asked.get("key").asText(), Instant.parse(asked.get("as_of").asText()),
        Instant.parse(asked.get("expire_on").asText()), payload);
  }

  private static void describe(List<Table.Row> rows, ArrayNode into) {
    for (Table.Row each : rows) {
      ObjectNode one = into.addObject();
      one.put("name", each.name()).put("key", each.key()).put("as_of", each.asOf().toString()).put("expire_on", each.expireOn().toString());
      if (each.payload() == null) {
        one.putNull("payload");
        continue;
      }
      one.put("class", each.payload().getClass().getName());
      one.put("payload", each.payload() instanceof Object[] many ? Arrays.toString(many) : each.payload().toString());
    }
  }
}
