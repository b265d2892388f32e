#include "commands/config_source.hpp"

#include <holdfast/error.hpp>

#include "base/secret.hpp"
#include "failover/config/file.hpp"
#include "failover/config/plan.hpp"
#include "serve/config/effective.hpp"
#include "serve/config/server_config.hpp"
#include "terminal/text.hpp"
#include "terminal/usage.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

namespace config = detail::serve::config;

/// What a file says about one service.
struct service_settings {
  config::database_config database{};
  std::vector<std::pair<std::string, std::string>> options{};
};

/// Returns the service of this name, or the only one if the name is empty.
template <class Service>
const Service& chosen_service(const std::vector<Service>& services, const std::string& name,
                              const std::string& section, const std::string& file) {
  std::vector<std::string> names;
  for (const auto& service : services) names.push_back(service.name);
  if (names.empty())
    throw error(errc::invalid_argument,
                file + " has no [" + section + ".NAME]; add it, or give the URL");
  if (name.empty() && names.size() == 1) return services.front();
  const auto match = std::ranges::find(services, name, &Service::name);
  if (match != services.end()) return *match;
  const std::string option = section == "stores" ? "--store" : "--outbox";
  if (name.empty())
    throw error(errc::invalid_argument,
                file + " has several [" + section + "]; give " + option + " " + listed(names));
  throw error(errc::invalid_argument, file + " has no [" + section + "." + name + "]; give " +
                                          option + " " + listed(names));
}

std::string fence_text(const std::optional<config::fence_kind>& fence) {
  constexpr std::array<const char*, 4> names{"super", "clock", "wait", "none"};
  return fence ? names.at(static_cast<std::size_t>(*fence)) : "";
}

/// A file of [failover] alone describes one store.
service_settings engine_settings(const std::string& file, std::string_view text,
                                 configured_service service) {
  if (service != configured_service::store)
    throw error(errc::invalid_argument,
                file + " configures protected calls only; give the URL on the command line");
  auto plan = detail::failover::config::make_plan(file, text, {});
  if (plan.url.empty())
    throw error(errc::invalid_argument,
                file + " has no failover.store.url; add it, or give --store URL");
  return {.database = {.url = std::move(plan.url),
                       .user = plan.database.user,
                       .password = plan.database.password,
                       .password_file = plan.database.password_file},
          .options = {{"--prefix", plan.store.prefix},
                      {"--payload-column", std::string(to_string(plan.store.payload))}}};
}

service_settings read_settings(const std::string& file, const std::string& name,
                               configured_service service) {
  const detail::secret_text text(detail::failover::config::read_text(file));
  if (config::is_engine_file(text.view())) return engine_settings(file, text.view(), service);
  const auto all = config::read_config(file, text.view());
  if (service == configured_service::store) {
    const auto& found = chosen_service(all.stores, name, "stores", file);
    return {.database = found.database,
            .options = {{"--prefix", found.prefix},
                        {"--payload-column", std::string(to_string(found.payload))}}};
  }
  if (service == configured_service::outbox) {
    const auto& found = chosen_service(all.outboxes, name, "outboxes", file);
    return {.database = found.database,
            .options = {{"--prefix", found.prefix}, {"--lanes", std::to_string(found.lanes)}}};
  }
  if (!all.sequences)
    throw error(errc::invalid_argument, file + " has no [sequences]; add it, or give --store URL");
  return {.database = all.sequences->database,
          .options = {{"--prefix", all.sequences->prefix},
                      {"--fence", fence_text(all.sequences->fence)},
                      {"--super-store", all.sequences->super_store}}};
}

/// With the user of the configuration, if the URL has none.
std::string url_with_user(std::string url, const std::string& user) {
  const auto authority = url.find("://");
  if (user.empty() || authority == std::string::npos) return url;
  const auto begin = authority + 3;
  const auto user_end = url.substr(0, url.find_first_of("/?", begin)).rfind('@');
  if (user_end != std::string::npos && user_end >= begin) url.erase(begin, user_end + 1 - begin);
  return url.insert(begin, user + "@");
}

void set_if_missing(const command& cmd, const std::string& name, const std::string& value) {
  if (value.empty()) return;
  if (const auto found = cmd.find(name); found && !found->is_set()) found->set(value);
}

void apply(const command& cmd, const option& file, const option& url, configured_service service) {
  const bool has_url = url.is_set() && !url.is_from_variable();
  const std::string name = has_url ? url.text() : std::string();
  if (name.find(':') != std::string::npos)
    throw error(errc::invalid_argument,
                "--config has the database already; remove the URL, or give the name of a section");
  auto settings = read_settings(file.text(), name, service);
  auto& database = settings.database;
  url.set(url_with_user(database.url, database.user));
  for (const auto& [option_name, value] : settings.options) set_if_missing(cmd, option_name, value);
  set_if_missing(cmd, "--password-file", database.password_file);
  // Not part of the URL, which messages and process lists show.
  if (!database.password.empty()) {
    const char* variable =
        database.url.starts_with("redis") ? "HOLDFAST_REDIS_PASSWORD" : "HOLDFAST_PASSWORD";
    ::setenv(variable, database.password.c_str(),
             1);  // NOLINT(concurrency-mt-unsafe): no thread yet
    detail::wipe(database.password);
  }
}

}  // namespace

void add_config_source(command& cmd, const option& url, configured_service service) {
  const option file =
      cmd.value("--config", "FILE",
                service == configured_service::sequences
                    ? "Instead of the URL: a file of 'holdfast serve', which has [sequences]"
                    : "Instead of the URL: a file of 'holdfast serve'; the URL may then be the "
                      "name of a section")
          .file();
  cmd.prepare([cmd, file, url, service](console&) {
    if (file.is_set()) return apply(cmd, file, url, service);
    if (url.is_set() && url.text().empty())
      throw error(errc::invalid_argument,
                  url.name() + " is empty; give the URL of a database, such as sqlite:answers.db");
    if (!url.is_set())
      throw error(errc::invalid_argument,
                  url.name() + " is missing; see '" + full_name(cmd.app()) + " --help'");
  });
}

}  // namespace holdfast::cli
