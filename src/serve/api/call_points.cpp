#include "serve/api/call_points.hpp"

#include <holdfast/key/typed_json.hpp>

#include <algorithm>
#include <set>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t most_arguments = 100;

/// Names end up in tables, metrics and scopes of tokens, where a colon separates parts.
bool is_point_name(std::string_view name) {
  return !name.empty() && name.size() <= max_name_length && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == '/';
  });
}

}  // namespace

std::string holdfast_encode(const json_answer& answer) { return answer.json; }

json_answer holdfast_decode(std::string_view bytes, std::type_identity<json_answer>) {
  return {.json = std::string(bytes)};
}

call_points::call_points(std::shared_ptr<engine> engine, const std::vector<std::string>& configured)
    : engine_(std::move(engine)) {
  std::set<std::string> existing;
  for (const auto& status : engine_->points()) existing.insert(status.name);
  for (const auto& name : configured) {
    // The server itself protects calls under some of these names.
    if (!existing.contains(name)) points_.emplace(name, add(name));
  }
}

call_points::call_point call_points::get(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  if (const auto it = points_.find(name); it != points_.end()) return it->second;
  if (!is_point_name(name))
    throw error(errc::invalid_argument,
                "the name of a point has letters, digits and . _ - / and at most 50 of them",
                {.path = "point"});
  if (new_points_ >= most_new_points)
    throw error(errc::too_large,
                "too many points are in use that the configuration does not have; add "
                "[failover.points.NAME] to it",
                {.path = "point"});
  auto added = points_.emplace(std::string(name), add(std::string(name))).first->second;
  ++new_points_;
  return added;
}

call_points::call_point call_points::add(const std::string& name) {
  // The expiry is known after the registration, and used by calls only.
  const auto expiry = std::make_shared<holdfast::expiry>();
  point_hooks<json_answer> hooks;
  hooks.expiry = [expiry](const json_answer& answer, timestamp now) {
    return answer.expires.value_or(expiry->after(now));
  };
  auto added = engine_->protect(
      name, {.payload_class = "json"},
      [](const run_time_arguments&) -> std::optional<json_answer> {
        throw error(errc::internal, "calls of this point are made by other programs");
      },
      std::move(hooks));
  *expiry = engine_->resolved(name).expiry;
  return added;
}

run_time_arguments read_arguments(const std::vector<std::string>& typed_json) {
  if (typed_json.size() > most_arguments)
    throw error(errc::too_large, "a call has at most 100 arguments", {.path = "args"});
  holdfast::key::typed_json_reader reader(holdfast::key::scheme::failover);
  run_time_arguments arguments;
  for (std::size_t i = 0; i < typed_json.size(); ++i) {
    try {
      arguments.values.push_back(reader.read(typed_json[i]));
    } catch (const error& problem) {
      auto path = "args[" + std::to_string(i) + "]";
      if (!problem.path().empty()) path += "." + problem.path();
      throw error(problem.code(), problem.message(), {.path = std::move(path)});
    }
  }
  return arguments;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
