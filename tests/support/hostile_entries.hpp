#pragma once

/// \file
/// Entries that an outbox would never write, but that somebody with access to its store could: each
/// must be parked with a reason.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// An event with the key `k` whose payload is lists inside each other.
inline std::string nested(const std::string& id, std::size_t depth) {
  return R"({"v":1,"id":")" + id + R"(","type":"t","key":"k","payload":)" +
         std::string(depth, '[') + std::string(depth, ']') +
         R"(,"createdAt":1700000000000,"seq":1})";
}

/// An event with the key `k` and a payload of this size.
inline std::string entry_of_size(const std::string& id, std::size_t size) {
  return R"({"v":1,"id":")" + id + R"(","type":"t","key":"k","payloadText":")" +
         std::string(size, 'x') + R"(","createdAt":1700000000000,"seq":1})";
}

/// A part of the reason, and the entry. The event with this id has the key `k`.
inline std::vector<std::pair<std::string, std::string>> hostile_entries(const std::string& id) {
  const auto entry = [](const std::string& entry_id, const std::string& fields) {
    return R"({"v":1,"id":")" + entry_id + "\"," + fields +
           R"(,"payload":{},"createdAt":1700000000000,"seq":1})";
  };
  const std::string key = R"(,"key":"k")";
  std::string headers;
  for (int i = 0; i < 65; ++i)
    headers += (i == 0 ? "" : ",") + ("\"h" + std::to_string(i)) + R"(":"v")";
  return {
      {"type of an event has a control character",
       entry(id, R"("type":"paid\u0000refunded")" + key)},
      {"type of an event has 200000 bytes",
       entry(id, R"("type":")" + std::string(200'000, 'x') + "\"" + key)},
      {"content type of an event has a control",
       entry(id, R"("type":"t","contentType":"text/plain\r\nX-Admin: 1")" + key)},
      {"aggregate id of an event has a control",
       entry(id, R"("type":"t","aggregateId":"7\n")" + key)},
      {"schema of an event has 300 bytes",
       entry(id, R"("type":"t","schema":")" + std::string(300, 's') + "\"" + key)},
      {"name of a header has a control character",
       entry(id, R"("type":"t","headers":{"a\r\nb":"c"})" + key)},
      {"name of a header is empty", entry(id, R"("type":"t","headers":{"":"c"})" + key)},
      {"longer than 4096 bytes",
       entry(id, R"("type":"t","headers":{"a":")" + std::string(5000, 'v') + "\"}" + key)},
      {"more than 64 headers", entry(id, R"("type":"t","headers":{)" + headers + "}" + key)},
      {"time to live of an event", entry(id, R"("type":"t","timeToLive":9000000000000000)" + key)},
      {"after the year 9999",
       R"({"v":1,"id":")" + id +
           R"(","type":"t","key":"k","payload":{},"createdAt":9000000000000000000,"seq":1})"},
      {"type of an event has a control character", entry(id, R"("type":"paid\u009b2J")" + key)},
      {"type of an event has a control character",
       entry(id, R"("type":"paid\u202edednufer")" + key)},
      {"type of an event has a control character",
       entry(id, R"("type":"paid\u2028refunded")" + key)},
      {"header 'a' has a control character",
       entry(id, R"("type":"t","headers":{"a":"b\r\nX-Admin: 1"})" + key)},
      {"header 'a' has a control character",
       entry(id, R"("type":"t","headers":{"a":"b\u0000c"})" + key)},
      {"nests deeper than 1024", nested(id, 100'000)},
      {"nests deeper than 1024", nested(id, 1'025)},
      {"another event", entry(id, R"("type":"t","key":"other")")},
      {"another event", entry("018f2b6e-5c1e-7000-8000-000000000001", R"("type":"t")" + key)},
  };
}

}  // namespace holdfast::test
