package peer;

import java.lang.reflect.Array;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.UUID;

/** Keys by the published scheme: arguments to raw text, raw text to UUID. Written from the description, with the JDK's own MD5 and texts. */
final class Keys {
  private Keys() {}

  static String effectiveName(String name, String domain) { return domain.isBlank() ? name : domain; }

  static String raw(List<?> args) {
    if (args == null || args.isEmpty()) return "NO-ARG";
    List<String> segments = new ArrayList<>();
    for (Object each : args) segments.add(segment(each));
    return String.join(":", segments);
  }

  static String key(String effectiveName, String raw) {
    return UUID.nameUUIDFromBytes((effectiveName + ":" + raw).getBytes(StandardCharsets.UTF_8)).toString();
  }

  private static String segment(Object argument) {
    if (argument == null) return "";
    List<String> parts = new ArrayList<>();
    if (argument instanceof Collection<?> many) {
      for (Object each : many) parts.add(segment(each));
    } else if (argument.getClass().isArray()) {
      for (int i = 0; i < Array.getLength(argument); ++i) parts.add(segment(Array.get(argument, i)));
    } else {
      return String.valueOf(argument);
    }
    return String.join(",", parts);
  }
}
