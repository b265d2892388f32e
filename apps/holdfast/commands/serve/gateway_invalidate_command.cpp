// holdfast gateway invalidate.

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>

#include "commands/database_location.hpp"
#include "commands/groups.hpp"
#include "commands/store/entry_pages.hpp"
#include "serve/gateway/stored_response.hpp"
#include "terminal/text.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

namespace gateway = detail::serve::gateway;

struct invalidate_options {
  database_location location;
  option column;
  option route;
  option target;
  option below;
  option key;

  explicit invalidate_options(command& cmd)
      : location(cmd),
        column(cmd.value("--payload-column", "",
                         "Type of the PAYLOAD column when the table was created (default bytes)")
                   .one_of({"text", "bytes"})),
        route(cmd.value("--route", "NAME", "The route (default gateway)")),
        target(cmd.value("--target", "PATH",
                         "Path and query, as clients send them. In the database the values of a "
                         "query are masked: answers for other values of the same parameters are "
                         "invalidated, too")),
        below(cmd.value("--below", "PATH", "All paths that begin with this")),
        key(cmd.value("--key", "KEY", "The key of an entry")) {}

  void check() const {
    const int count = int{target.is_set()} + int{below.is_set()} + int{key.is_set()};
    if (count != 1) throw error(errc::invalid_argument, "give one of --target, --below and --key");
    for (const auto& [name, text] :
         {std::pair{"--target", target.text("/")}, std::pair{"--below", below.text("/")}}) {
      if (!text.starts_with('/'))
        throw error(errc::invalid_argument, std::string(name) + " begins with a slash");
    }
    if (below.text().find('?') != std::string::npos)
      throw error(errc::invalid_argument, "--below is the beginning of a path, without a query");
  }

  [[nodiscard]] bool matches(const entry& row) const {
    if (row.tombstone() || row.payload_class != gateway::stored_response_class) return false;
    if (key.is_set()) return row.key == key.text();
    const auto kept = gateway::decode(*row.payload);
    if (!kept.invalid.empty()) return false;
    return below.is_set() ? kept.target.substr(0, kept.target.find('?')).starts_with(below.text())
                          : kept.target == gateway::masked_target(target.text());
  }
};

exit_code invalidate(console& io, const invalidate_options& options, bool json) {
  options.check();
  const auto database = options.location.open_database(io);
  const auto entries = database.store(
      {.payload = options.column.text() == "text" ? payload_column::text : payload_column::bytes,
       .probe = start_probe::off,
       .start = start_mode::require});
  const auto now = system_clock()->now();
  std::uint64_t read = 0;
  std::uint64_t invalidated = 0;
  const auto unreadable =
      for_each_entry(*entries, options.route.text("gateway"),
                     std::numeric_limits<std::uint64_t>::max(), [&](const entry& row) {
                       ++read;
                       if (row.expire_on < now || !options.matches(row)) return;
                       // A tombstone: an older write cannot bring the answer back.
                       entries->put({.name = row.name,
                                     .key = row.key,
                                     .as_of = std::max(row.as_of, now),
                                     .expire_on = row.expire_on});
                       ++invalidated;
                     });
  if (json)
    io.out << "{\"invalidated\":" << std::to_string(invalidated)
           << ",\"read\":" << std::to_string(read) << "}\n";
  else
    io.out << std::to_string(invalidated) << " of " << std::to_string(read)
           << " answers invalidated\n";
  if (unreadable > 0) io.warn(std::to_string(unreadable) + " entries could not be read");
  return invalidated > 0 ? exit_ok : exit_negative;
}

}  // namespace

void add_gateway_invalidate_command(command gateway_command) {
  command cmd = gateway_command.add("invalidate", "Mark kept answers of a gateway as invalid");
  cmd.about(
      "Works on the database, and needs no running gateway. Gateways that run give an answer from "
      "their memory for up to 10 s after that. Exit code 1 if no answer was invalidated.");
  cmd.examples(
      "holdfast gateway invalidate --store sqlite:gateway.db --below /countries/\n"
      "holdfast gateway invalidate --store postgresql://app@db/app --route shop --target "
      "'/cart?id=7'");
  const invalidate_options options(cmd);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([options, json](console& io) { return invalidate(io, options, json.is_set()); });
}

}  // namespace holdfast::cli
