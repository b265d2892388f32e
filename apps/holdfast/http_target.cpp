#include "http_target.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox/relay.hpp>

#include "base/url.hpp"

#include <httplib.h>

#include <charconv>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::cli {

struct http_target::state {
  std::string server;  ///< https://host:443
  std::string path;    ///< with its parameters
  std::chrono::milliseconds timeout;
  std::mutex mutex{};
  std::vector<std::unique_ptr<httplib::Client>> idle{};

  std::unique_ptr<httplib::Client> take() {
    {
      const std::scoped_lock lock(mutex);
      if (!idle.empty()) {
        auto one = std::move(idle.back());
        idle.pop_back();
        return one;
      }
    }
    auto made = std::make_unique<httplib::Client>(server);
    made->set_keep_alive(true);
    made->set_connection_timeout(timeout);
    made->set_read_timeout(timeout);
    made->set_write_timeout(timeout);
    return made;
  }
  void give_back(std::unique_ptr<httplib::Client> one) {
    const std::scoped_lock lock(mutex);
    idle.push_back(std::move(one));
  }
};

http_target::http_target(const std::string& text, std::chrono::milliseconds timeout) : state_(std::make_unique<state>()) {
  const url parsed = parse_url(text);
  if ((parsed.scheme != "http" && parsed.scheme != "https") || parsed.host.empty())
    throw error(errc::invalid_argument, "events are posted to http://host/path or https://host/path, not to " + without_password(text));
  if (parsed.user) throw error(errc::invalid_argument, "a user in the URL is not sent; put a proxy that knows it in between");
  const auto authority = text.find("//") + 2;
  const auto path = text.find_first_of("/?", authority);
  state_->server = text.substr(0, path);
  state_->path = path == std::string::npos ? "/" : text.substr(path);
  if (state_->path.front() == '?') state_->path.insert(0, "/");
  state_->timeout = timeout;
}

http_target::~http_target() = default;

outcome http_target::post(const std::map<std::string, std::string>& headers, const std::string& body, const std::string& content_type) {
  auto client = state_->take();
  httplib::Headers sent;
  for (const auto& [name, value] : headers) sent.emplace(name, value);
  const auto answer = client->Post(state_->path, sent, body, content_type);
  if (!answer) {
    const std::string why = httplib::to_string(answer.error());
    // The connection's state is unknown: the next request makes another.
    switch (answer.error()) {
      case httplib::Error::Read:
      case httplib::Error::Write:
      case httplib::Error::Unknown:
        return outcome::ambiguous("no answer from " + state_->server + ": " + why);
      default:
        return outcome::retry("cannot reach " + state_->server + ": " + why);
    }
  }
  const outcome said = relay::outcome_of_status(answer->status, answer->get_header_value("Retry-After"));
  state_->give_back(std::move(client));
  return said;
}

}  // namespace holdfast::cli
