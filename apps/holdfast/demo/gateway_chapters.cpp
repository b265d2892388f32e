// The same for any HTTP service: `holdfast gateway` in a process of its own, in front of an
// upstream that is killed.

#include <holdfast/error.hpp>

#include "demo/child_process.hpp"
#include "demo/scratch_directory.hpp"
#include "demo/stage.hpp"
#include "demo/upstream.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::cli {

namespace {

/// The value of a field of an answer. Empty if it is not there.
std::string_view field_of(std::string_view reply, std::string_view name) {
  const auto line = reply.find("\r\n" + std::string(name) + ": ");
  if (line == std::string_view::npos) return {};
  const auto begin = line + name.size() + 4;
  return reply.substr(begin, reply.find("\r\n", begin) - begin);
}

/// What the client sees: the status, the body, and what Cache-Status says, without the times.
std::string described(const std::string& reply) {
  const auto status = reply.substr(reply.find(' ') + 1, 3);
  const auto cache = field_of(reply, "Cache-Status");
  if (!reply.starts_with("HTTP/1.1 2")) return status;
  const auto content = reply.substr(reply.find("\r\n\r\n") + 4);
  if (cache.find("fwd=stale") == std::string_view::npos) return status + "  " + content + "   live";
  const auto detail = cache.find("detail=");
  const auto reason =
      detail == std::string_view::npos ? std::string_view("failed") : cache.substr(detail + 7);
  return status + "  " + content + "   stale, because the upstream is " +
         std::string(reason.substr(0, reason.find(';')));
}

void ask(stage& show, std::uint16_t port, const std::string& path, std::string_view expected) {
  const auto result = described(http_reply(port, get_request(path)));
  if (result.find(expected) == std::string::npos)
    throw error(errc::internal, "the demonstration expected '" + std::string(expected) +
                                    "' and got '" + result + "'");
  show.show("GET " + path, result);
}

void no_code(stage& show) {
  show.paragraph(
      "A gateway does this for a service in any language. It stands in front of the service, keeps "
      "its last good answers, and gives them when it fails.");
  show.gap();
  const scratch_directory directory;
  upstream server("1.0842");
  const running_self gateway({"gateway", "--upstream",
                              "http://127.0.0.1:" + std::to_string(server.port()), "--listen",
                              "127.0.0.1:0", "--store", directory.url()});
  const auto port = static_cast<std::uint16_t>(
      std::stoul(gateway.first_line().substr(gateway.first_line().rfind(':') + 1)));
  show.typed("holdfast gateway --upstream http://127.0.0.1:8080");
  ask(show, port, "/rates/EUR", "1.0842   live");
  show.gap();
  show.paragraph("The service is killed with -9.");
  show.gap();
  server.kill();
  ask(show, port, "/rates/EUR", "1.0842   stale");
  show.good("the last good answer; its fields Age and Cache-Status tell the client how old it is");
  ask(show, port, "/rates/JPY", "502");
  show.good("what was never answered is a failure, and not an empty answer");
}

}  // namespace

std::vector<chapter> gateway_chapters() { return {{"The same, without code", no_code}}; }

}  // namespace holdfast::cli
